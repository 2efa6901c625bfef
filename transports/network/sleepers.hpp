// SPDX-License-Identifier: Apache-2.0
// Threads of one rank that sleep until a network brings something. Any of them may take in what came for another.
#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime/base/descriptor.hpp"

namespace torii::transports {

/// A thread that sleeps wakes when the descriptor of an engine becomes readable. If another thread takes in what has
/// come, the descriptor is silent again, and the first one may never notice. So the first time that an engine takes
/// something in while a thread sleeps, a bell rings that wakes every sleeper, and all later sleeps are short. The bell
/// is rung once and stays readable; short sleeps pay no heed to it. A rank that has one thread in calls at a time never
/// rings it.
///
/// No wake-up is lost. Be T what a thread takes in: it stores T, raises `takes_`, then reads `asleep_`. A sleeper reads
/// `takes_`, looks for T, raises `asleep_`, then reads `takes_` again. The two raises and the two reads behind them are
/// sequentially consistent, so they have one order, and not both reads precede the other side's raise. Either the taker
/// sees the sleeper and rings: the bell is readable when the sleeper polls it, or makes its poll return. Or the sleeper
/// sees `takes_` raised. If it was raised since the first read, the sleeper does not sleep. If it was raised before,
/// the first read acquired it, and the sleeper saw T when it looked. A taker that finds the bell rung leaves all to the
/// bell: a sleeper that has not heard of it yet polls it.
class Sleepers {
 public:
  static constexpr int kSharedSleepUs = 1000;

  Sleepers() noexcept : bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), are_several_(!bell_.open()) {}

  /// The thread that calls this has taken in something that another one may wait for, or has ended such a thing.
  void took() noexcept {
    if (are_several_.load(std::memory_order_relaxed)) return;
    takes_.fetch_add(1, std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst) == 0) return;
    if (!are_several_.exchange(true, std::memory_order_relaxed)) (void)eventfd_write(bell_.get(), 1);
  }

  /// A thread on its way to sleep. It makes this, looks for what it waits for, and asks may_sleep().
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

    /// Counts the thread as asleep until this ends. False when something has been taken in since this was made.
    bool may_sleep() noexcept {
      all_.asleep_.fetch_add(1, std::memory_order_seq_cst);
      is_asleep_ = true;
      return all_.takes_.load(std::memory_order_seq_cst) == takes_;
    }
    int at_most(int us) const noexcept { return sleeps_short_ ? std::min(us, kSharedSleepUs) : us; }
    /// What to poll beside the descriptors of engines; -1: nothing.
    int bell() const noexcept { return sleeps_short_ ? -1 : all_.bell_.get(); }

   private:
    Sleepers& all_;
    bool sleeps_short_;
    bool is_asleep_ = false;
    std::uint64_t takes_;
  };

 private:
  Descriptor bell_;
  std::atomic<bool> are_several_;  ///< something was taken in while a thread slept, or there is no bell
  std::atomic<int> asleep_ = 0;
  std::atomic<std::uint64_t> takes_ = 0;  ///< not counted any more when `are_several_`
};

}  // namespace torii::transports
