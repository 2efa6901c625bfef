// SPDX-License-Identifier: Apache-2.0
// Which peers are lost, and what went wrong first: shared by the engines of a transport.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/status.hpp"

namespace torii::transports {

/// Thread-safe.
class PeerStates {
 public:
  explicit PeerStates(int ranks) : lost_(static_cast<std::size_t>(ranks)) {}

  bool is_lost(int peer) const noexcept {
    return lost_[static_cast<std::size_t>(peer)].load(std::memory_order_acquire);
  }
  /// Status::transport once something failed that concerns no single peer.
  Status status() const noexcept { return broken_.load(std::memory_order_acquire) ? Status::transport : Status::ok; }

  void lose(int peer, const std::string& why) noexcept {
    if (lost_[static_cast<std::size_t>(peer)].exchange(true, std::memory_order_acq_rel)) return;
    keep(why);
  }
  void break_down(const std::string& why) noexcept {
    if (broken_.exchange(true, std::memory_order_acq_rel)) return;
    keep(why);
  }
  /// The first cause.
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  void keep(const std::string& why) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      if (text_.empty()) text_ = why;
    } catch (const std::exception&) {
      text_.clear();  // out of memory: the status alone has to do
    }
  }

  std::vector<std::atomic<bool>> lost_;
  std::atomic<bool> broken_ = false;
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace torii::transports
