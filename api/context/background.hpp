// SPDX-License-Identifier: Apache-2.0
// The teams of a context that have operations in flight: threads that wait for another team move them too.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <shared_mutex>
#include <stop_token>
#include <vector>

#include "api/context/attached_team.hpp"

namespace torii {

/// Thread-safe.
class Background {
 public:
  /// Makes room for so many teams.
  void reserve(std::size_t teams);
  /// There must be room for the team.
  void enter(AttachedTeam* team) noexcept;
  void leave(AttachedTeam* team) noexcept;
  /// Moves the operations of all teams but `except`; true if an operation moved.
  bool progress(const AttachedTeam* except) noexcept;
  /// For progress threads: sleeps until the list contains a team. False if stopped before.
  bool wait(const std::stop_token& stop);

 private:
  template <typename Change>
  void change(const Change& change);

  std::shared_mutex mutex_;       ///< shared by threads that move operations, exclusive for changes of the list
  std::atomic<int> changes_ = 0;  ///< threads that want to change the list; meanwhile progress() does nothing
  std::condition_variable_any came_;
  std::vector<AttachedTeam*> list_;
  std::atomic<int> count_ = 0;
};

}  // namespace torii
