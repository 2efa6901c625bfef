// SPDX-License-Identifier: Apache-2.0
// Which blocks left-out ranks could know, and until when.
#include "api/context/late_writers.hpp"

#include <algorithm>

namespace torii {

std::shared_ptr<const void> LateWriters::add(Transport& transport, int rank) noexcept {
  const std::lock_guard lock(mutex_);
  is_used_.store(true, std::memory_order_release);
  try {
    auto teams = std::make_shared<const int>(rank);
    writers_.push_back({&transport, rank, Descriptor(), nullptr, teams, arena_.used_offsets()});
    return teams;
  } catch (const std::exception&) {
    lacks_memory_ = true;
    return nullptr;
  }
}

void LateWriters::keep(int rank) noexcept {
  const std::lock_guard lock(mutex_);
  for (Writer& writer : writers_) {
    if (writer.rank == rank) writer.kept = writer.teams.lock();
  }
}

void LateWriters::forget(const Transport& transport, const shared_memory::NodePeers& peers) noexcept {
  (void)may_write();  // drops those that have ended
  const std::lock_guard lock(mutex_);
  for (Writer& writer : writers_) {
    if (writer.transport != &transport) continue;
    writer.transport = nullptr;
    writer.life = peers.life(writer.rank);
    writer.kept = writer.teams.lock();
  }
}

bool LateWriters::is_over(const Writer& writer) noexcept {
  if (writer.teams.expired()) return true;
  if (writer.transport != nullptr) return !writer.transport->alive(writer.rank);
  return writer.life.open() && !shared_memory::is_held(writer.life);
}

bool LateWriters::may_write() noexcept {
  if (!is_used_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  std::erase_if(writers_, is_over);
  return lacks_memory_ || !writers_.empty();
}

bool LateWriters::may_reach(std::size_t offset) noexcept {
  if (!is_used_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  return lacks_memory_ || std::ranges::any_of(writers_, [=](const Writer& writer) {
           return std::ranges::binary_search(writer.blocks, offset);
         });
}

}  // namespace torii
