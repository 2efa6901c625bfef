// SPDX-License-Identifier: Apache-2.0
// A hop: a thread leaves its CPU for another one of its affinity, which is afterwards what it was before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace torii {

/// CPU numbers as the kernel's masks have them, up to as many as Linux can be built for.
class CpuSet {
 public:
  static constexpr int kCpusMost = 8192;

  static CpuSet all() noexcept {
    CpuSet set;
    set.words_.fill(~std::uint64_t{0});
    return set;
  }
  /// Numbers that are in no set are not added.
  void add(int cpu) noexcept {
    if (cpu >= 0 && cpu < kCpusMost) word(cpu) |= bit(cpu);
  }
  bool has(int cpu) const noexcept {
    return cpu >= 0 && cpu < kCpusMost && (words_[static_cast<std::size_t>(cpu) / kBits] & bit(cpu)) != 0;
  }
  void remove(const CpuSet& others) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~others.words_[i];
  }
  bool is_empty() const noexcept { return *this == CpuSet(); }
  bool operator==(const CpuSet& other) const noexcept = default;
  /// For system calls.
  void* data() noexcept { return words_.data(); }
  const void* data() const noexcept { return words_.data(); }
  static constexpr std::size_t kBytes = kCpusMost / 8;

 private:
  static constexpr std::size_t kBits = 64;

  static std::uint64_t bit(int cpu) noexcept { return std::uint64_t{1} << (static_cast<std::size_t>(cpu) % kBits); }
  std::uint64_t& word(int cpu) noexcept { return words_[static_cast<std::size_t>(cpu) / kBits]; }

  std::array<std::uint64_t, kCpusMost / kBits> words_{};
};

/// The result of an attempt.
enum class Hop : std::uint8_t {
  made,
  not_made,    ///< there is no CPU to go to, or the affinity or the cpuset changed meanwhile
  impossible,  ///< the system refuses: later attempts are in vain too
};

/// The affinity of the calling thread; a test has one without a kernel.
class Affinity {
 public:
  virtual ~Affinity() = default;
  /// 0, or an errno.
  virtual int get(CpuSet& cpus) noexcept = 0;
  virtual int set(const CpuSet& cpus) noexcept = 0;
};

/// Moves the thread to a CPU of its affinity that `taken` does not have. Nothing may interrupt it in between: the
/// caller has blocked signals.
Hop hop(Affinity& thread, const CpuSet& taken) noexcept;

/// The same by the system calls of Linux, for the calling thread.
Hop hop(const CpuSet& taken) noexcept;

}  // namespace torii
