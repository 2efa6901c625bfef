// SPDX-License-Identifier: Apache-2.0
// The mark by which a thread that waits asks its peers for a ring of the doorbell.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace torii {

/// One thread's share in the word of its rank that says who sleeps (docs/memory_order.md, "The doorbell"). It belongs
/// to one wait and stays from one sleep to the next, so that only the first of them has to be seen by all putters.
class SleepMark {
 public:
  SleepMark() = default;
  ~SleepMark() { clear(); }
  SleepMark(SleepMark&& other) noexcept
      : is_fenced(other.is_fenced), sleeping_(std::exchange(other.sleeping_, nullptr)) {}
  SleepMark& operator=(SleepMark&&) = delete;

  /// Does nothing if it is set.
  void set(std::atomic<std::uint32_t>& sleeping) noexcept {
    if (sleeping_ != nullptr) return;
    sleeping_ = &sleeping;
    sleeping.fetch_add(1, std::memory_order_seq_cst);
  }
  /// The wait is over, or something has moved. This publishes nothing: a putter that still sees the mark rings in vain.
  void clear() noexcept {
    if (sleeping_ == nullptr) return;
    sleeping_->fetch_sub(1, std::memory_order_relaxed);
    sleeping_ = nullptr;
    is_fenced = false;
  }

  bool is_fenced = false;  ///< a fence for all has been made since it was set

 private:
  std::atomic<std::uint32_t>* sleeping_ = nullptr;  ///< nullptr: not set
};

}  // namespace torii
