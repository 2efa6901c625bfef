// SPDX-License-Identifier: Apache-2.0
// Numbers and extents of a pairwise exchange on standing rings.
#include "runtime/execution/exchange_on_rings.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "runtime/plan/transfer_rules.hpp"

namespace torii {
namespace {

/// How a block divides into messages, and what each takes in the outbox.
struct BlockMessages {
  std::uint64_t count = 0;
  std::size_t place_bytes = 0;
};

BlockMessages messages_of(std::size_t bytes, std::size_t segment_bytes) noexcept {
  return {(bytes + segment_bytes - 1) / segment_bytes, round_up(std::min(bytes, segment_bytes), kLineBytes)};
}

/// Blocks of exchanges are in lines. A message that belongs to a call which this rank has not come to yet may stand
/// there too, with any tag.
LengthFault unexpected_in(const ReceiveEnd& ring, const RingUses& uses, const LengthEvidence& evidence) noexcept {
  const std::size_t at = uses.entries.of(ring.taken) * entry_bytes(EntryKind::line);
  const std::uint64_t word = load_word(ring.entries[static_cast<std::size_t>(EntryKind::line)] + at);
  if (word == 0 || static_cast<std::uint32_t>(word) != static_cast<std::uint32_t>(ring.taken)) return {};
  for (const std::uint32_t signature : evidence.earlier) {
    const std::size_t bytes = length_in_signal(word, signature, ring.taken);
    if (bytes == 0 || bytes > kAtOnceBytes) continue;
    if (evidence.may_be_of_later_call(ring.rank, static_cast<std::uint32_t>((word - ring.taken) >> 32))) return {};
    return {ring.peer, true, true, bytes, 0};
  }
  return {};
}

}  // namespace

LengthFault find_unexpected_block(const InstalledPlan& plan, bool lacks_room, const LengthEvidence& evidence) {
  LengthFault found;
  for (const ReceiveEnd* const ring : plan.uses.incoming) {
    if (found.peer < 0) found = unexpected_in(*ring, plan.uses, evidence);
  }
  for (const ExchangePeer& peer : plan.exchange.peers) {
    if (found.peer < 0 && peer.takes) found = unexpected_in(peer.in.ring.end(), plan.uses, evidence);
  }
  const Outbox::Reader reader = plan.rings->outbox().awaited();
  if (found.peer >= 0 || !lacks_room || reader.ring == nullptr) return found;
  if (!evidence.has_ended(reader.ring->rank) || reader.ring->is_taken_below(reader.number)) return found;
  return {reader.ring->peer, false, true, 0, 0};
}

void take_numbers(InstalledPlan& plan) noexcept {
  for (ExchangePeer& peer : plan.exchange.peers) {
    if (peer.sends) peer.sent = peer.out.ring.first_standing();
    if (peer.takes) peer.taken = peer.in.ring.first_standing();
    peer.offers_made = plan.rings->exchange_offers(peer.rank);
  }
}

bool claim_blocks(RunningCall& call, std::span<const std::size_t> bytes) noexcept {
  const std::vector<ExchangePeer>& peers = call.plan->exchange.peers;
  const std::size_t segment_bytes = call.shape->layout.segment_bytes();
  std::size_t readers = 0;
  std::size_t row_bytes = 0;  // with one place for each block
  for (const std::size_t block : bytes) {
    if (block == 0) continue;
    ++readers;
    row_bytes += messages_of(block, segment_bytes).place_bytes;
  }
  if (readers == 0) return true;
  Outbox& outbox = call.plan->rings->outbox();
  const std::uint64_t places =
      std::clamp<std::uint64_t>(outbox.bytes() / row_bytes, 1, static_cast<std::uint64_t>(call.plan->plan.slots));
  std::size_t extent_bytes = 0;
  for (const std::size_t block : bytes) {
    const BlockMessages messages = messages_of(block, segment_bytes);
    extent_bytes += std::min(places, messages.count) * messages.place_bytes;
  }
  const std::size_t touched_bytes = outbox.touched_bytes();
  const std::optional<std::size_t> begin = outbox.claim(extent_bytes, readers);
  if (!begin) return false;
  call.on_rings.touches_outbox_first = outbox.touched_bytes() != touched_bytes;
  call.on_rings.payload_slots = SlotOrder(static_cast<int>(places));
  std::size_t next = *begin;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    const BlockMessages messages = messages_of(bytes[i], segment_bytes);
    SendEnd& ring = peers[i].out.ring.end();
    ring.part = next;
    ring.payload_bytes = messages.place_bytes;
    next += std::min(places, messages.count) * messages.place_bytes;
    outbox.add_reader(ring, ring.first + messages.count);
  }
  return true;
}

void hand_on_numbers(RunningCall& call) noexcept {
  for (ExchangePeer& peer : call.plan->exchange.peers) {
    if (peer.sends) peer.out.ring.end().first = peer.sent;
    if (peer.takes) peer.in.ring.end().first = peer.taken;
    call.plan->rings->exchange_offers(peer.rank) = peer.offers_made;
  }
}

}  // namespace torii
