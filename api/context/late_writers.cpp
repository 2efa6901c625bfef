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
    writers_.push_back({&transport, rank, nullptr, teams, arena_.used_offsets()});
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

void LateWriters::forget(const Transport& transport) noexcept {
  (void)may_write();  // drops those that have ended
  const std::lock_guard lock(mutex_);
  for (Writer& writer : writers_) {
    if (writer.transport == &transport) writer.transport = nullptr;
  }
}

bool LateWriters::is_over(const Writer& writer) noexcept {
  if (writer.transport == nullptr) return false;
  return writer.teams.expired() || !writer.transport->alive(writer.rank);
}

bool LateWriters::reach(const std::size_t* offset) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(writers_, is_over);
  return lacks_memory_ || std::ranges::any_of(writers_, [=](const Writer& writer) {
           return offset == nullptr || std::ranges::binary_search(writer.blocks, *offset);
         });
}

}  // namespace torii
