// SPDX-License-Identifier: Apache-2.0
// Numbers and extents of a pairwise exchange.
#include "runtime/execution/exchange_on_rings.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

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

}  // namespace

void take_numbers(InstalledPlan& plan) noexcept {
  for (ExchangePeer& peer : plan.exchange.peers) {
    if (peer.sends) peer.sent = peer.out.ring.first();
    if (peer.takes) peer.taken = peer.in.ring.first();
    peer.offers_made = plan.rings->exchange_offers(peer.rank);
  }
}

bool claim_blocks(RunningCall& call, std::span<const std::size_t> bytes) noexcept {
  const std::vector<ExchangePeer>& peers = call.plan->exchange.peers;
  const std::size_t segment_bytes = call.shape->layout.segment_bytes();
  const auto messages_to = [&](std::size_t peer) {
    BlockMessages messages = messages_of(bytes[peer], segment_bytes);
    if (peers[peer].remote) messages.place_bytes += kLineBytes;
    return messages;
  };
  std::size_t readers = 0;
  std::size_t row_bytes = 0;  // with one place for each block
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    if (!peers[i].remote) ++readers;
    row_bytes += messages_to(i).place_bytes;
  }
  if (row_bytes == 0) return true;
  Outbox& outbox = call.plan->rings->outbox();
  const std::uint64_t most = call.plan->remote ? call.entries.count : static_cast<std::uint64_t>(call.plan->plan.slots);
  const std::uint64_t places = std::clamp<std::uint64_t>(outbox.bytes() / row_bytes, 1, most);
  std::size_t extent_bytes = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const BlockMessages messages = messages_to(i);
    if (bytes[i] != 0) extent_bytes += std::min(places, messages.count) * messages.place_bytes;
  }
  const std::size_t more_bytes = outbox.reach_for(extent_bytes);
  if (more_bytes != 0) Counters::add(call.transport.counters().staging_bytes, more_bytes);
  const std::size_t touched_bytes = outbox.touched_bytes();
  const std::optional<std::size_t> begin = outbox.claim(extent_bytes, readers);
  if (!begin) return false;
  call.on_rings.touches_outbox_first = outbox.touched_bytes() != touched_bytes;
  call.on_rings.places = PlaceOrder(places);
  std::size_t next = *begin;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    const BlockMessages messages = messages_to(i);
    SendEnd& ring = peers[i].out.ring.end();
    ring.part = next;
    ring.payload_bytes = messages.place_bytes;
    next += std::min(places, messages.count) * messages.place_bytes;
    if (!peers[i].remote) outbox.add_reader(ring, ring.first + messages.count);
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
