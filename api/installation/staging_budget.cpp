// SPDX-License-Identifier: Apache-2.0
// Assigns and empties staging.
#include "api/installation/staging_budget.hpp"

#include <algorithm>
#include <string>

#include "api/context/staging_pool.hpp"
#include "runtime/devices/memory_limits.hpp"
#include "runtime/rings/channel_rings.hpp"

namespace torii {

StagingBudget::StagingBudget(const Membership& members, InstallBoard& board, int ranks_reserved)
    : members_(members),
      board_(board),
      bytes_(team_staging_bytes(ranks_reserved, members.context())),
      control_bytes_(team_control_bytes(ranks_reserved, members.context())),
      memory_bytes_(team_memory_bytes(ranks_reserved, members.context())),
      ranks_reserved_(ranks_reserved) {
  reserve_pairs();
}

bool StagingBudget::is_memory_short() const {
  return memory_left_lately() / 2 < members_.context().own_node_ranks() * bytes_;
}

/// Peers write there, and a signal in the middle of their call would be the alternative.
void StagingBudget::reserve_pairs() {
  if (!is_memory_short()) return;
  const std::size_t offset = pairs_place().offset;
  const std::size_t bytes = memory_bytes_ - offset - team_rings_bytes(ranks_reserved_, members_.context());
  members_.context().staging().reserve(members_.own().memory_offset + offset, bytes);
}

void StagingBudget::reserve_rings(std::size_t bytes) {
  if (bytes <= reserved_ring_bytes_ || !is_memory_short()) return;
  members_.context().staging().reserve(members_.own().memory_offset + *rings_offset() + reserved_ring_bytes_,
                                       bytes - reserved_ring_bytes_);
  reserved_ring_bytes_ = bytes;
}

void StagingBudget::take_rings(std::size_t bytes) {
  if (bytes <= ring_bytes_) return;
  reserve_rings(bytes);
  Counters::add(members_.transport().counters().staging_bytes, bytes - ring_bytes_);
  ring_bytes_ = bytes;
}

void StagingBudget::take_outbox(ChannelRings& rings) {
  StagingPool& pool = members_.context().staging();
  const std::size_t bytes = rings.sizes().outbox_bytes;
  try {
    const OutboxMemory memory = pool.take_outbox(bytes);
    rings.place_outbox(memory.offset);
    rings.outbox().note_touched(memory.touched_bytes);
    if (!is_memory_short()) return;
    rings.outbox().note_touched(bytes);
    pool.reserve(memory.offset, bytes);
  } catch (const Error& error) {
    throw Error(error.status(), members_.text(members_.rank()) + " has no " + std::to_string(bytes) +
                                    " bytes for an outbox of the team: " + error.what());
  }
}

/// Running out of memory is then an error of this call, not a signal in the middle of it. Otherwise pages are taken
/// when they are touched, since most are never used.
void StagingBudget::reserve(std::size_t bytes) {
  const std::size_t end = used_bytes_ + bytes;
  if (end <= touched_bytes_) return;
  if (!is_memory_short()) return;
  members_.context().staging().reserve(members_.own().memory_offset + control_bytes_ + touched_bytes_,
                                       end - touched_bytes_);
}

void StagingBudget::take(std::size_t bytes) noexcept {
  used_bytes_ += bytes;
  if (used_bytes_ <= touched_bytes_) return;
  Counters::add(members_.transport().counters().staging_bytes, used_bytes_ - touched_bytes_);
  touched_bytes_ = used_bytes_;
}

/// Waits until no member uses the old plans, then until every member has cleared its staging; then puts may come.
void StagingBudget::recycle(StartWaits& waits, const std::function<void()>& forget) {
  waits.finish_all();
  wait_for_epoch(waits, ++epoch_);
  std::byte* const staging =
      members_.transport().mapped(members_.own().context_rank, members_.own().memory_offset) + control_bytes_;
  std::fill(staging, staging + used_bytes_, std::byte{0});
  forget();
  used_bytes_ = 0;
  wait_for_epoch(waits, ++epoch_);
}

void StagingBudget::wait_for_epoch(StartWaits& waits, std::uint64_t epoch) {
  board_.put_epoch(epoch);
  for (int member = 0; member < members_.ranks(); ++member) {
    waits.await_member(member, "to recycle staging", [&] { return board_.has_reached(member, epoch); });
  }
  board_.push_out();
}

}  // namespace torii
