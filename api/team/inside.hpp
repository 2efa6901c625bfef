// SPDX-License-Identifier: Apache-2.0
// The lock between a team's caller and the threads that move its operations in the background.
#pragma once

#include <atomic>

namespace torii {

/// Keeps background movers out while the owner is inside a call; free while the team is not in the background list.
class Inside {
 public:
  Inside(std::atomic_flag& busy, bool needed) noexcept : busy_(needed ? &busy : nullptr) {
    if (busy_ == nullptr) return;
    while (busy_->test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Inside() {
    if (busy_ != nullptr) busy_->clear(std::memory_order_release);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  std::atomic_flag* busy_;
};

}  // namespace torii
