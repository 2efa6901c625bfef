// SPDX-License-Identifier: Apache-2.0
// Takes the memory of persistent operations' rings, and tells the members where it is.
#include "api/installation/persistent_rings.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "runtime/fabric/words.hpp"

namespace torii {
namespace {

/// The members' word for a table, in TeamControl: its offset, and a mark. 0 tells nothing yet.
constexpr std::uint64_t kTold = 1;

/// The word in a table: the offset of the rings, which are whole lines, and in its low bits how many they are and how
/// large, so that members whose operations differ never store behind each other's rings.
constexpr std::uint64_t kSizesMask = kLineBytes - 1;
constexpr std::uint64_t sizes_bits(const RingSizes& sizes) noexcept {
  const auto log = [](int count) { return static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(count))); };
  return log(sizes.entries / 8) << 3 | log(sizes.streams_most());  // powers of two: 8 to 64, up to 16. Never 0
}

}  // namespace

const PersistentRings::Place& PersistentRings::place_of(std::size_t channel) const noexcept {
  static const Place none;
  const std::size_t number = channel - rings_.shared();
  return number < places_.size() ? places_[number] : none;
}

bool PersistentRings::has_room(std::size_t channel, const RingSizes& needed) const noexcept {
  const Place& place = place_of(channel);
  return !place.has_rings || (place.sizes.entries >= needed.entries && place.sizes.rings >= needed.rings);
}

void PersistentRings::check(std::size_t channel) const {
  const auto most = static_cast<std::size_t>(rings_.area().sizes().own_channels);
  if (channel - rings_.shared() < most) return;
  throw Error(Status::no_resource,
              "the team has " + std::to_string(most) + " persistent operations, and there cannot be more; free some");
}

/// Outboxes are powers of two: all that were replaced by larger ones take less than the last one.
void PersistentRings::open(std::size_t channel, const RingSizes& needed) {
  const std::size_t number = channel - rings_.shared();
  if (places_.size() <= number) places_.resize(number + 1);
  Place& place = places_[number];
  if (!place.has_rings) take_words(channel, place, needed);
  if (place.outbox.bytes < needed.outbox_bytes) {
    replaced_.reserve(replaced_.size() + 1);
    const OutboxMemory larger = memory_.take_outbox(std::bit_ceil(needed.outbox_bytes));
    if (place.outbox.bytes != 0) replaced_.push_back(place.outbox);
    place.outbox = larger;
    place.sizes.outbox_bytes = larger.bytes;
    if (rings_.has(channel)) rings_.on(channel).move_outbox(larger.offset, larger.bytes);
  }
}

/// The words are zero before they are told: who sees the offset may write there.
void PersistentRings::take_words(std::size_t channel, Place& place, const RingSizes& needed) {
  reserve_told(channel - rings_.shared());
  if (table_offset_ == 0) take_table();
  place.words_offset = memory_.take_words(RingArea(needed).total_bytes());
  place.sizes = needed;
  place.sizes.outbox_bytes = 0;
  place.has_rings = true;
  const std::uint64_t entry = table_offset_ + (channel - rings_.shared()) * sizeof(std::uint64_t);
  const std::uint64_t word = place.words_offset | sizes_bits(needed);
  store_word(members_.transport().mapped(members_.own().context_rank, entry), word);
  // A member may be asleep until it knows the place: it is woken.
  for (int member = 0; member < members_.ranks(); ++member) {
    const int rank = members_.at(member).context_rank;
    if (is_distant(member)) {
      told_.tell(member, told_line(member, channel, members_.rank()), word);
      continue;
    }
    const auto* const sleeping = member == members_.rank() ? nullptr : members_.transport().sleeping(rank);
    if (sleeping != nullptr && is_marked(*sleeping)) members_.transport().ring(rank);
  }
}

/// Members may be some operations ahead.
void PersistentRings::reserve_told(std::size_t own_channel) {
  constexpr std::size_t kAhead = 64;
  const RingSizes& shared = rings_.area().sizes();
  if (!shared.several_nodes() || own_channel + kAhead / 2 < told_reserved_) return;
  const std::size_t end = std::min(own_channel + kAhead, static_cast<std::size_t>(shared.own_channels));
  const std::size_t begin = rings_.area().told(told_reserved_, 0);
  memory_.reserve_told(begin, rings_.area().told(end, 0) - begin);
  told_reserved_ = end;
}

void PersistentRings::take_table() {
  table_offset_ = memory_.take_words(kOwnChannelsMost * sizeof(std::uint64_t));
  members_.control().own_rings.store(table_offset_ | kTold, std::memory_order_release);
}

/// 0: the member has not told it.
std::uint64_t PersistentRings::told(int member, std::size_t channel) const noexcept {
  if (is_distant(member)) {
    const std::byte* const line =
        members_.transport().mapped(members_.own().context_rank, told_line(members_.rank(), channel, member));
    return read_told(line).value_or(0);
  }
  const std::uint64_t table = members_.control(member).own_rings.load(std::memory_order_acquire);
  if (table == 0) return 0;
  const std::uint64_t entry = (table ^ kTold) + (channel - rings_.shared()) * sizeof(std::uint64_t);
  const bool is_possible =
      entry % sizeof(std::uint64_t) == 0 && entry <= members_.transport().arena_bytes() - sizeof(std::uint64_t);
  if (!is_possible) return UINT64_MAX;  // offset_of() refuses it
  return load_word(members_.transport().mapped(members_.at(member).context_rank, entry));
}

bool PersistentRings::are_known(std::size_t channel) {
  if (rings_.has(channel)) return true;
  std::vector<std::uint64_t> offsets;
  for (int member = 0; member < members_.ranks(); ++member) {
    const std::uint64_t word = told(member, channel);
    if (word == 0) return false;
    offsets.push_back(offset_of(word, member, channel));
  }
  const Place& place = place_of(channel);
  rings_.add(channel, place.sizes, std::move(offsets));
  if (place.outbox.bytes != 0) rings_.on(channel).place_outbox(place.outbox.offset);
  return true;
}

std::uint64_t PersistentRings::offset_of(std::uint64_t word, int member, std::size_t channel) const {
  const RingSizes& sizes = place_of(channel).sizes;
  const std::uint64_t arena_bytes = members_.transport().arena_bytes();
  const std::size_t bytes = RingArea(sizes).total_bytes();
  const std::uint64_t offset = word & ~kSizesMask;
  if (bytes > arena_bytes || offset > arena_bytes - bytes) {
    throw Error(Status::transport,
                members_.text(member) + " says that the rings of a persistent operation are at offset " +
                    std::to_string(offset) + " of its arena, which has " + std::to_string(arena_bytes) + " bytes");
  }
  if ((word & kSizesMask) == sizes_bits(sizes)) return offset;
  const int first = std::min(member, members_.rank());
  const int other = std::max(member, members_.rank());
  throw Error(Status::mismatch, "calls differ: " + members_.text(first) + " and " + members_.text(other) +
                                    " have prepared persistent operations that need other rings");
}

std::vector<OutboxMemory> PersistentRings::outboxes() const {
  std::vector<OutboxMemory> all = replaced_;
  if (table_offset_ != 0) all.push_back({table_offset_, 0, 0});
  for (const Place& place : places_) {
    if (place.outbox.bytes != 0) all.push_back(place.outbox);
  }
  for (OutboxMemory& one : all) one.touched_bytes = SIZE_MAX;  // none of it is kept
  return all;
}

std::vector<Stretch> PersistentRings::words() const {
  std::vector<Stretch> all;
  for (const Place& place : places_) {
    if (place.has_rings)
      all.push_back({static_cast<std::size_t>(place.words_offset), RingArea(place.sizes).total_bytes()});
  }
  return all;
}

}  // namespace torii
