// SPDX-License-Identifier: Apache-2.0
// The lock between a team's callers, and between them and the threads that move its operations in the background.
#pragma once

#include <atomic>

#include "runtime/base/platform.hpp"
#include "runtime/base/tuned_constants.hpp"

namespace torii {

/// The holder of this lock may change the team's operations.
class CallerLock {
 public:
  void lock() noexcept {
    if (try_lock()) return;
    waiting_.fetch_add(1, std::memory_order_relaxed);
    for (int spins = 0; !try_lock(); ++spins) {
      if (spins >= kSpins) platform().yield();
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  /// For threads that come back: threads that wait already go first.
  void lock_behind_waiters() noexcept {
    while (has_waiters()) platform().yield();
    lock();
  }
  /// Acquire and release order what those do who hold it one after the other.
  bool try_lock() noexcept { return !busy_.test_and_set(std::memory_order_acquire); }
  void unlock() noexcept { busy_.clear(std::memory_order_release); }
  /// A hint: whether somebody waits for it.
  bool has_waiters() const noexcept { return waiting_.load(std::memory_order_relaxed) != 0; }

 private:
  static constexpr auto kSpins = tuned<int>("waiting.lock_polls");
  std::atomic_flag busy_;
  std::atomic<int> waiting_ = 0;
};

/// Holds the lock while it lives. Not needed while nobody else may come in: then it costs nothing.
class Locked {
 public:
  Locked(CallerLock& lock, bool needed) noexcept : lock_(needed ? &lock : nullptr) {
    if (lock_ != nullptr) lock_->lock();
  }
  ~Locked() {
    if (lock_ != nullptr) lock_->unlock();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  CallerLock* lock_;
};

/// Gives the lock up while it lives, for somebody who holds it. It then lets the threads go first that wait already.
/// Otherwise a thread that only unlocks and locks again would mostly find the lock free before they do.
class Unlocked {
 public:
  Unlocked(CallerLock& lock, bool needed) noexcept : lock_(needed ? &lock : nullptr) {
    if (lock_ != nullptr) lock_->unlock();
  }
  ~Unlocked() {
    if (lock_ != nullptr) lock_->lock_behind_waiters();
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  CallerLock* lock_;
};

}  // namespace torii
