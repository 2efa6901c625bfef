// SPDX-License-Identifier: Apache-2.0
// Wakes the threads of a rank that sleep until a message arrives. Any thread may receive a message for another thread.
#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime/base/descriptor.hpp"
#include "runtime/base/tuned_constants.hpp"

namespace torii::transports {

/// A sleeping thread wakes when the descriptor of an engine becomes readable. If another thread receives the message,
/// the descriptor is no longer readable, and the sleeper may never notice. So when an engine first receives something
/// while a thread sleeps, a bell rings that wakes every sleeper. All later sleeps are short. The bell rings once and
/// stays readable; short sleeps ignore it. A rank with one thread in calls at a time never rings it.
///
/// No wake-up is lost. Let T be a received message. The receiving thread stores T, increments `takes_`, then reads
/// `asleep_`. A sleeper reads `takes_`, looks for T, increments `asleep_`, then reads `takes_` again. The two
/// increments and the reads after them are sequentially consistent. They have one order, in which at least one of the
/// reads follows the other thread's increment. There are two cases:
/// - The receiver sees the sleeper and rings. The bell is readable when the sleeper polls it, or makes its poll return.
/// - The sleeper sees the incremented `takes_`. If its first read had the old value, the sleeper does not sleep.
///   Otherwise the first read acquired the increment, and the sleeper saw T when it looked.
/// If the bell has rung already, the receiver does nothing: a sleeper that does not know of the bell yet polls it.
class Sleepers {
 public:
  static constexpr auto kSharedSleepUs = tuned<int>("waiting.shared_sleep");

  Sleepers() noexcept : bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), are_several_(!bell_.open()) {}

  /// Call after receiving or ending something for which another thread may wait.
  void took() noexcept {
    if (are_several_.load(std::memory_order_relaxed)) return;
    takes_.fetch_add(1, std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst) == 0) return;
    if (!are_several_.exchange(true, std::memory_order_relaxed)) (void)eventfd_write(bell_.get(), 1);
  }

  /// A thread that is about to sleep. It makes this object, checks what it waits for, and calls may_sleep().
  class Sleeper {
   public:
    explicit Sleeper(Sleepers& all) noexcept
        : all_(all),
          sleeps_short_(all.are_several_.load(std::memory_order_relaxed)),
          takes_(all.takes_.load(std::memory_order_acquire)) {}
    ~Sleeper() {
      if (is_asleep_) all_.asleep_.fetch_sub(1, std::memory_order_relaxed);
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    /// Counts the thread as asleep until this object ends. False if took() was called since this object was made.
    bool may_sleep() noexcept {
      all_.asleep_.fetch_add(1, std::memory_order_seq_cst);
      is_asleep_ = true;
      return all_.takes_.load(std::memory_order_seq_cst) == takes_;
    }
    int at_most(int us) const noexcept { return sleeps_short_ ? std::min(us, kSharedSleepUs) : us; }
    /// A descriptor to poll beside those of the engines, or -1.
    int bell() const noexcept { return sleeps_short_ ? -1 : all_.bell_.get(); }

   private:
    Sleepers& all_;
    bool sleeps_short_;
    bool is_asleep_ = false;
    std::uint64_t takes_;
  };

 private:
  Descriptor bell_;
  std::atomic<bool> are_several_;  ///< something was received while a thread slept, or there is no bell
  std::atomic<int> asleep_ = 0;
  std::atomic<std::uint64_t> takes_ = 0;  ///< not counted any more once `are_several_` is true
};

}  // namespace torii::transports
