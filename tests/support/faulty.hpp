// SPDX-License-Identifier: Apache-2.0
// A transport around another one that delays, holds up, fails or breaks puts, by a seed: for tests.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "runtime/fabric/transport.hpp"

namespace torii::faulty {

struct Faults {
  std::uint64_t seed = 1;             ///< the same seed gives the n-th put of a rank the same delay
  double delayed = 0;                 ///< share of the puts, credits included, that are delayed: 0..1
  int delay_us_max = 0;               ///< a delay lasts from 0 to this; 0: the thread gives the CPU away once
  std::int64_t puts_until_fail = -1;  ///< so many puts succeed, all later ones return Status::transport; -1: never
  int engine = -1;  ///< the faults are those of this engine, words that it carries included; -1: of all
  /// How long the engine that is named takes for each put, one after the other, while the thread goes on: a slow link.
  /// Puts to ranks of the own node, which are mapped, go as always. kNever: what is put is never seen again, as by a
  /// cut link.
  std::int64_t engine_us = 0;
  static constexpr std::int64_t kNever = -1;
  int lost_peer = -1;  ///< puts to this rank beyond puts_until_fail return peer_lost, and no others fail
};

/// Passes everything on to `inner`, which must outlive it. As thread-safe as `inner`.
class Faulty final : public Transport {
 public:
  Faulty(Transport& inner, const Faults& faults) : inner_(inner), faults_(faults) {}

  const Capabilities& capabilities() const noexcept override { return inner_.capabilities(); }
  int rank() const noexcept override { return inner_.rank(); }
  int ranks() const noexcept override { return inner_.ranks(); }
  int node(int rank) const noexcept override { return inner_.node(rank); }
  std::byte* mapped(int peer, std::uint64_t offset) noexcept override { return inner_.mapped(peer, offset); }
  Status put(const Put& put) noexcept override;
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept override;
  bool readable(int peer) const noexcept override { return inner_.readable(peer); }
  Status read(int peer, std::uintptr_t address, std::byte* to, std::size_t bytes) noexcept override {
    return inner_.read(peer, address, to, bytes);
  }
  Status progress() noexcept override;
  bool drained() noexcept override;
  void sleep(SleepMark& mark, int most_us, bool (*still_idle)(void* data), void* data) noexcept override {
    inner_.sleep(mark, most_us, still_idle, data);
  }
  bool alive(int peer) noexcept override { return inner_.alive(peer) && !(is_lost_ && peer == faults_.lost_peer); }
  std::uint64_t arena_bytes() const noexcept override { return inner_.arena_bytes(); }
  std::string failure_text() const override { return inner_.failure_text(); }
  bool oversubscribed() const noexcept override { return inner_.oversubscribed(); }

  /// Whether nothing is on its way over a slow engine.
  bool is_idle() noexcept {
    const std::lock_guard lock(mutex_);
    return held_.empty();
  }
  /// Puts and credits so far, and how many of them were delayed.
  std::uint64_t puts() const noexcept { return puts_.load(std::memory_order_relaxed); }
  std::uint64_t delays() const noexcept { return delays_.load(std::memory_order_relaxed); }

 private:
  /// On its way over the slow engine.
  struct Held {
    Put put;
    std::int64_t due_ns;
    PutHold hold;
    std::array<std::byte, kInlineBytes> in_line = {};  ///< the payload, if it is in the signal's line
  };

  Status before_put(int peer, int engine) noexcept;
  bool is_held(int peer, int engine) const noexcept {
    return faults_.engine_us != 0 && engine == faults_.engine && node(peer) != node(rank());
  }
  Status hold(const Put& put) noexcept;

  Transport& inner_;
  Faults faults_;
  std::mutex mutex_;
  std::deque<Held> held_;
  std::int64_t busy_until_ns_ = 0;
  std::atomic<bool> is_lost_ = false;
  // Relaxed throughout: the counters must not order the very accesses whose order is tested.
  std::atomic<std::uint64_t> puts_ = 0;
  std::atomic<std::uint64_t> delays_ = 0;
};

}  // namespace torii::faulty
