// SPDX-License-Identifier: Apache-2.0
// The lock between a team's callers, and between them and the threads that move its operations in the background.
#pragma once

#include <atomic>

#include "runtime/base/platform.hpp"

namespace torii {

/// A thread that is inside may change the team's operations.
class Door {
 public:
  void enter() noexcept {
    if (try_enter()) return;
    waiting_.fetch_add(1, std::memory_order_relaxed);
    for (int spins = 0; !try_enter(); ++spins) {
      if (spins >= kSpins) platform().yield();
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  /// For those who come back: whoever waits already goes first.
  void enter_again() noexcept {
    while (is_wanted()) platform().yield();
    enter();
  }
  /// Acquire and release order what those do who are inside one after the other.
  bool try_enter() noexcept { return !busy_.test_and_set(std::memory_order_acquire); }
  void leave() noexcept { busy_.clear(std::memory_order_release); }
  /// A hint: whether somebody waits to enter.
  bool is_wanted() const noexcept { return waiting_.load(std::memory_order_relaxed) != 0; }

 private:
  static constexpr int kSpins = 100;
  std::atomic_flag busy_;
  std::atomic<int> waiting_ = 0;
};

/// Holds the door while it lives. Not needed while nobody else may come in: then it costs nothing.
class Inside {
 public:
  Inside(Door& door, bool needed) noexcept : door_(needed ? &door : nullptr) {
    if (door_ != nullptr) door_->enter();
  }
  ~Inside() {
    if (door_ != nullptr) door_->leave();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Door* door_;
};

/// Leaves the door while it lives, for somebody who is inside. It then lets those in first who wait already: without
/// that, a thread that only steps out and in again would mostly find the door free before they do.
class Outside {
 public:
  Outside(Door& door, bool needed) noexcept : door_(needed ? &door : nullptr) {
    if (door_ != nullptr) door_->leave();
  }
  ~Outside() {
    if (door_ != nullptr) door_->enter_again();
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  Door* door_;
};

}  // namespace torii
