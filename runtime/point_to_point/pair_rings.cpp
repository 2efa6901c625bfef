// SPDX-License-Identifier: Apache-2.0
// Writes messages into the entries of standing rings and finds them there.
#include "runtime/point_to_point/pair_rings.hpp"

#include <cstring>

#include "runtime/execution/sending.hpp"

namespace torii {
namespace {

/// The rings carry nothing else, so signatures only tell where the payload is: in the line, or in a place.
constexpr std::uint32_t kInEntry = 0x70743275;
constexpr std::uint32_t kInPlace = 0x70743277;

constexpr std::size_t kHeadingAt = sizeof(std::uint64_t);
constexpr std::size_t kPayloadAt = kHeadingAt + sizeof(Heading);
static_assert(kPayloadAt + kPayloadInLineMost == kLineBytes);

/// In the line that a peer tells: the count, then its other words.
constexpr std::size_t kWordsAt = sizeof(std::uint64_t);
static_assert(kWordsAt + kPairWordsBytes <= kLineBytes);

}  // namespace

RingStreams::RingStreams(Transport& transport, const PairArea& area, const RingMembers& members, int peer) noexcept
    : PairStreams({peer, members.context_ranks[static_cast<std::size_t>(peer)], false}, {}), sizes_(area.sizes()) {
  const auto at = [&](int member, std::size_t offset) {
    const auto index = static_cast<std::size_t>(member);
    return transport.mapped(members.context_ranks[index], members.offsets[index] + offset);
  };
  const int own = members.rank;
  const int own_place = members.place(own);
  const int peer_place = members.place(peer);
  constexpr auto kLines = static_cast<std::size_t>(EntryKind::line);
  for (RingEnd* const end : {static_cast<RingEnd*>(&to_), static_cast<RingEnd*>(&from_)}) {
    end->peer = context_rank();
    end->rank = peer;
    end->sleeping = transport.sleeping(context_rank());
  }
  to_.entries[kLines] = at(peer, area.entries(peer_place, own_place));
  from_.entries[kLines] = at(own, area.entries(own_place, peer_place));
  std::byte* const told = at(own, area.told(own_place, peer_place));
  std::byte* const tells = at(peer, area.told(peer_place, own_place));
  to_.count = told;
  from_.count = tells;
  words() = PairWords(tells + kWordsAt, told + kWordsAt);
  own_places_ = at(own, area.places(own_place, peer_place));
  their_places_ = at(peer, area.places(peer_place, own_place));
}

bool RingStreams::may_send(const RunningCall& /*call*/, std::size_t bytes) noexcept {
  const auto entries = static_cast<std::uint64_t>(sizes_.entries);
  if (sent_ >= entries && !to_.is_taken_below(sent_ - entries + 1)) return false;
  return bytes <= kPayloadInLineMost || to_.is_taken_below(free_at_[place_of(payloads_sent_)]);
}

void RingStreams::send(RunningCall& call, const Heading& heading, const void* payload, std::size_t bytes) noexcept {
  std::byte* const entry = to_.entries[static_cast<std::size_t>(EntryKind::line)] + entry_offset(sent_);
  std::uint32_t signature = kInEntry;
  std::memcpy(entry + kHeadingAt, &heading, sizeof(heading));
  if (bytes > kPayloadInLineMost) {
    signature = kInPlace;
    const std::size_t place = place_of(payloads_sent_++);
    kernels::copy(own_places_ + place * sizes_.place_bytes, payload, bytes, false);
    free_at_[place] = sent_ + 1;
  } else if (bytes != 0) {
    std::memcpy(entry + kPayloadAt, payload, bytes);
  }
  store_word(entry, signal_word(signature, sent_++));
  if (to_.is_asleep()) call.transport.ring(to_.peer);
}

Arrived RingStreams::arrived(const RunningCall& /*call*/) const noexcept {
  const std::byte* const entry = from_.entries[static_cast<std::size_t>(EntryKind::line)] + entry_offset(from_.taken);
  const std::uint64_t word = load_word(entry);
  if (word == signal_word(kInEntry, from_.taken)) return {entry + kHeadingAt, entry + kPayloadAt, kPayloadInLineMost};
  if (word != signal_word(kInPlace, from_.taken)) return {};
  return {entry + kHeadingAt, their_places_ + place_of(payloads_taken_) * sizes_.place_bytes, sizes_.place_bytes};
}

void RingStreams::take(RunningCall& call, const Arrived& message) noexcept {
  from_.take(from_.taken);
  if (message.payload != message.heading + sizeof(Heading)) {
    ++payloads_taken_;
    ++payloads_untold_;
  }
  const bool is_urgent = payloads_untold_ >= quarter(sizes_.places);
  from_.publish(is_urgent ? 1 : quarter(sizes_.entries), call.transport);
  if (from_.published == from_.taken) payloads_untold_ = 0;
}

}  // namespace torii
