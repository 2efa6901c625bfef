// SPDX-License-Identifier: Apache-2.0
// Changes the list of teams with operations in flight, and moves their operations.
#include "api/context/background.hpp"

#include <mutex>

namespace torii {

template <typename Change>
void Background::change(const Change& change) {
  // Without this count, progress threads could take the shared lock in turn for ever.
  changes_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  changes_.fetch_sub(1, std::memory_order_relaxed);
  change();
  count_.store(static_cast<int>(list_.size()), std::memory_order_relaxed);
}

void Background::reserve(std::size_t teams) {
  change([&] { list_.reserve(teams); });
}

void Background::enter(AttachedTeam* team) noexcept {
  change([&] { list_.push_back(team); });
  came_.notify_all();
}

void Background::leave(AttachedTeam* team) noexcept {
  change([&] { std::erase(list_, team); });
}

bool Background::progress(const AttachedTeam* except) noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  if (changes_.load(std::memory_order_relaxed) != 0) return false;
  const std::shared_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;  // the list is being changed
  bool moved = false;
  for (AttachedTeam* team : list_) {
    if (team != except && team->progress_in_background()) moved = true;
  }
  return moved;
}

bool Background::wait(const std::stop_token& stop) {
  if (count_.load(std::memory_order_relaxed) != 0) return true;
  std::shared_lock lock(mutex_);
  return came_.wait(lock, stop, [this] { return !list_.empty(); });
}

}  // namespace torii
