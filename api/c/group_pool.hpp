// SPDX-License-Identifier: Apache-2.0
// The memory of groups that have ended, for the next ones.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "api/team/call_group.hpp"

namespace torii::c {

/// Threads of a team with many callers may have a group each.
class GroupPool {
 public:
  /// Throws std::bad_alloc.
  std::unique_ptr<CallGroup> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(++made_);
      return std::make_unique<CallGroup>();
    }
    std::unique_ptr<CallGroup> last = std::move(free_.back());
    free_.pop_back();
    return last;
  }
  void give_back(std::unique_ptr<CallGroup> group) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(group));
  }

 private:
  std::mutex mutex_;
  std::size_t made_ = 0;  ///< there is room for all of them
  std::vector<std::unique_ptr<CallGroup>> free_;
};

}  // namespace torii::c
