// SPDX-License-Identifier: Apache-2.0
// Takes memory, and where the machine has little of it, its pages.
#include "api/installation/team_memory.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "runtime/devices/memory_limits.hpp"
#include "runtime/rings/channel_rings.hpp"

namespace torii {
namespace {

/// Calls of most rows of the tune table touch no more of a channel's outbox.
constexpr std::size_t kOutboxBytesUsed = std::size_t{8} << 20;

}  // namespace

TeamMemory::TeamMemory(const Membership& members, const RingSizes& rings, int ranks_reserved)
    : members_(members),
      rings_(rings),
      bytes_(team_memory_bytes(ranks_reserved, rings.channels, members.context())),
      rings_bytes_(team_rings_bytes(ranks_reserved, rings.channels, members.context())),
      used_bytes_most_(bytes_ - team_control_bytes(ranks_reserved, members.context()) +
                       static_cast<std::size_t>(rings.channels) * std::min(rings.outbox_bytes, kOutboxBytesUsed)),
      ranks_reserved_(ranks_reserved) {
  reserve_pairs();
}

/// Whether half of what is left would not be enough if each rank of the node used all that it may. Running out of
/// memory is then an error of a call, not a signal in the middle of it. Otherwise pages are taken when they are
/// touched, since most are never used.
bool TeamMemory::is_memory_short() const {
  return memory_left_lately() / 2 < members_.context().own_node_ranks() * used_bytes_most_;
}

/// Peers write there, and a signal in the middle of their call would be the alternative.
void TeamMemory::reserve_pairs() {
  if (!is_memory_short()) return;
  const PairsPlace place = pairs_place();
  members_.context().team_memory().reserve(members_.own().memory_offset + place.offset, place.bytes);
}

void TeamMemory::reserve_rings(std::size_t bytes) {
  if (bytes <= reserved_ring_bytes_ || !is_memory_short()) return;
  members_.context().team_memory().reserve(members_.own().memory_offset + rings_offset() + reserved_ring_bytes_,
                                           bytes - reserved_ring_bytes_);
  reserved_ring_bytes_ = bytes;
}

void TeamMemory::reserve_rings(const RingArea& area) {
  int rings = area.sizes().rings;
  const std::size_t most = memory_left_lately() / 4 / members_.context().own_node_ranks();
  while (rings > 1 && area.words_bytes(rings) > most) rings /= 2;
  reserve_rings(area.words_bytes(rings));
}

void TeamMemory::reserve_told(std::size_t offset, std::size_t bytes) {
  if (!is_memory_short()) return;
  members_.context().team_memory().reserve(members_.own().memory_offset + rings_offset() + offset, bytes);
}

void TeamMemory::take_rings(std::size_t bytes) {
  if (bytes <= touched_ring_bytes_) return;
  reserve_rings(bytes);
  Counters::add(members_.transport().counters().staging_bytes, bytes - touched_ring_bytes_);
  touched_ring_bytes_ = bytes;
}

Error TeamMemory::refusal(const char* purpose, std::size_t bytes, const Error& reason) const {
  return {reason.status(), members_.text(members_.rank()) + " has no " + std::to_string(bytes) + " bytes for " +
                               purpose + ": " + reason.what()};
}

/// The memory that `take` returns, of so many `bytes`, where memory is short with the pages at its beginning.
template <class Take>
OutboxMemory TeamMemory::with_pages(const char* purpose, std::size_t bytes, std::size_t bytes_of_pages, Take&& take) {
  TeamMemoryPool& pool = members_.context().team_memory();
  std::optional<OutboxMemory> memory;
  try {
    memory.emplace(take());
    if (!is_memory_short() || bytes_of_pages <= memory->touched_bytes) return *memory;
    pool.reserve(memory->offset, bytes_of_pages);
    memory->touched_bytes = bytes_of_pages;
    return *memory;
  } catch (const Error& error) {
    if (memory) pool.free(memory->offset);
    throw refusal(purpose, bytes, error);
  }
}

void TeamMemory::take_outbox(ChannelRings& rings, std::size_t bytes) {
  const std::size_t used_bytes = std::min(bytes, rings.sizes().outbox_bytes);
  TeamMemoryPool& pool = members_.context().team_memory();
  if (!rings.has_outbox()) {
    const std::size_t all_bytes = rings.sizes().outbox_bytes;
    const auto take = [&] { return pool.take_outbox(all_bytes); };
    const OutboxMemory memory = with_pages("an outbox of the team", all_bytes, used_bytes, take);
    rings.place_outbox(memory.offset);
    rings.outbox().note_touched(memory.touched_bytes);
  } else if (used_bytes > rings.outbox().touched_bytes() && is_memory_short()) {
    try {
      pool.reserve(rings.outbox_offset(), used_bytes);
    } catch (const Error& error) {
      throw refusal("an outbox of the team", used_bytes, error);
    }
    rings.outbox().note_touched(used_bytes);
  }
}

OutboxMemory TeamMemory::take_outbox(std::size_t bytes) {
  TeamMemoryPool& pool = members_.context().team_memory();
  return with_pages("an outbox of the team", bytes, bytes, [&] { return pool.take_outbox(bytes); });
}

std::uint64_t TeamMemory::take_words(std::size_t bytes) {
  TeamMemoryPool& pool = members_.context().team_memory();
  const auto take = [&] { return OutboxMemory{pool.take(bytes, shared_memory::Backing::on_touch), bytes, 0}; };
  const OutboxMemory memory = with_pages("standing rings", bytes, bytes, take);
  Counters::add(members_.transport().counters().staging_bytes, bytes);
  return memory.offset;
}

}  // namespace torii
