// SPDX-License-Identifier: Apache-2.0
// Waiting ranks tell their node on which CPU they wait, so that two of them that sit on one CPU part.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/base/counters.hpp"
#include "runtime/base/cpu_hop.hpp"

namespace torii::shared_memory {

/// A CPU number and when a rank was seen there, in one word of its arena; 0: not yet. All about it is a hint: CPUs
/// change, the system may say any number, and several threads of a rank store here. A wrong one costs a needless hop.
struct CpuHint {
  static constexpr int kNowhere = -1;  ///< instead of a CPU: the rank hops now
  static constexpr int kCpuBits = 16;
  static constexpr std::uint64_t kCpuMask = (std::uint64_t{1} << kCpuBits) - 1;

  static std::uint64_t made(int cpu, std::int64_t now_ns) noexcept {
    return (static_cast<std::uint64_t>(now_ns) & ~kCpuMask) | ((static_cast<std::uint64_t>(cpu) + 1) & kCpuMask);
  }
  static int cpu(std::uint64_t hint) noexcept { return static_cast<int>(hint & kCpuMask) - 1; }
  static std::int64_t seen_ns(std::uint64_t hint) noexcept { return static_cast<std::int64_t>(hint & ~kCpuMask); }
};

/// Any thread of the rank may call.
class CpuHints {
 public:
  /// `hints` are those of the node's ranks, of which number `own` is this rank's. `hops`: threads of this rank may hop;
  /// it tells its CPU all the same, so that others can leave it.
  CpuHints(std::vector<std::atomic<std::uint64_t>*> hints, std::size_t own, bool hops, Counters& counters)
      : hints_(std::move(hints)), own_(own), counters_(counters), attempts_left_(hops ? kMissesMost : 0) {}

  /// For a thread that has waited for so long, on which no other thread of the process depends in this moment. It tells
  /// its CPU. If it has waited for long, and another rank was lately seen on this CPU, it hops to one on which none
  /// was. That rank may be the awaited one, which cannot run while this one polls. 0: as Transport::note_wait().
  void note_wait(std::int64_t waited_ns, std::int64_t now_ns) noexcept;

 private:
  void tell(int cpu, std::int64_t now_ns) noexcept;
  bool is_turn(std::int64_t now_ns) noexcept;
  void rest(std::int64_t now_ns) noexcept;
  void leave(const CpuSet& taken, std::int64_t now_ns) noexcept;

  /// Hops in a row after which the thread is on a taken CPU all the same. One may be chance; numbers of a sandbox do
  /// not follow a hop.
  static constexpr int kMissesMost = 3;

  std::vector<std::atomic<std::uint64_t>*> hints_;
  std::size_t own_;
  Counters& counters_;
  std::atomic<int> attempts_left_;           ///< none: this rank does not hop any more
  std::atomic<std::int64_t> next_ns_ = 0;    ///< before that nobody looks at the others' hints
  std::atomic<std::int64_t> rest_ns_ = 0;    ///< after the last hop
  std::atomic<std::int64_t> rested_ns_ = 0;  ///< when that rest ended
};

}  // namespace torii::shared_memory
