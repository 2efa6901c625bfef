// SPDX-License-Identifier: Apache-2.0
// The memory of groups that have ended, for the next ones.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "api/team/call_group.hpp"

namespace torii::c {

/// Threads of a team with many callers may have a group each. The pool owns all of them: a thread may end in its group,
/// after the team.
class GroupPool {
 public:
  /// Throws std::bad_alloc.
  CallGroup* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(all_.size() + 1);
      return all_.emplace_back(std::make_unique<CallGroup>()).get();
    }
    CallGroup* const last = free_.back();
    free_.pop_back();
    return last;
  }
  void give_back(CallGroup* group) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(group);  // for which take() has made room
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<CallGroup>> all_;
  std::vector<CallGroup*> free_;
};

}  // namespace torii::c
