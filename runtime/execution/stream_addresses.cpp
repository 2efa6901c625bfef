// SPDX-License-Identifier: Apache-2.0
// Computes the places of streams in the arenas of both ends.
#include "runtime/execution/stream_addresses.hpp"

#include "runtime/fabric/words.hpp"

namespace torii {

Nodes nodes_of(const Placement& placement) {
  Nodes nodes;
  for (const int rank : placement.context_ranks) nodes.push_back(placement.transport->node(rank));
  return nodes;
}

std::byte* StreamAddresses::slots(int receiver, int in_index) const {
  return placement_.transport->mapped(context_rank(receiver), slots_at(receiver, in_index));
}

OfferLine StreamAddresses::offer_line(int peer, int reader, int line) const {
  OfferLine result;
  result.peer = context_rank(peer);
  result.line_offset = staging(reader) + installed_.shape.offers_offset + static_cast<std::uint64_t>(line) * kLineBytes;
  result.line = placement_.transport->mapped(context_rank(reader), result.line_offset);
  return result;
}

OfferLine StreamAddresses::standing_offer_line(int peer, int reader, std::size_t line) const {
  OfferLine result;
  result.peer = context_rank(peer);
  result.line_offset = (reader == installed_.plan.rank ? placement_.rings->offers_offset_from(peer)
                                                       : placement_.rings->offers_offset_at(peer)) +
                       line * kLineBytes;
  result.line = placement_.transport->mapped(context_rank(reader), result.line_offset);
  return result;
}

RingPlace StreamAddresses::standing_place(const Stream& stream) const {
  RingPlace place;
  place.peer = context_rank(stream.peer);
  place.messages = static_cast<std::uint32_t>(stream.bundles_per_segment());
  place.remote = !shares_node(installed_.plan.rank, stream.peer);
  if (!place.remote) return place;
  const int size = installed_.uses.distant_size;
  place.stride = distant_entry_bytes(size);
  place.credit_group = placement_.rings->sizes().of(ring_kind(installed_.plan, size)).credit_group;
  place.engines.in_rotation = installed_.plan.exchange.exists();
  return place;
}

/// Where the receiver's entries are is set when it has told it (take_grants()).
RingPlace StreamAddresses::standing_place(const Stream& stream, const SendEnd& end) const {
  RingPlace place = standing_place(stream);
  place.credit_words = end.credits;
  return place;
}

RingPlace StreamAddresses::standing_place(const Stream& stream, const ReceiveEnd& end) const {
  RingPlace place = standing_place(stream);
  if (!place.remote) return place;
  place.slots_offset = end.given[static_cast<std::size_t>(installed_.uses.distant_size)] - 1;
  place.slots = place.payload_slots = own(place.slots_offset);
  place.credits_offset = end.credits_offset;
  return place;
}

RingPlace StreamAddresses::ring_place(const Stream& stream, int receiver, int in_index, int sender,
                                      int out_index) const {
  RingPlace place;
  place.peer = context_rank(stream.peer);
  place.remote = node(receiver) != node(sender);
  place.credits = stream.credits;
  place.messages = static_cast<std::uint32_t>(stream.bundles_per_segment());
  place.stride = installed_.shape.slot_bytes;
  place.slots_offset = slots_at(receiver, in_index);
  place.credits_offset = credits_at(sender, out_index);
  if (place.remote && sender == installed_.plan.rank) {
    place.slots = own(staging(sender) + installed_.shape.send_offset +
                      static_cast<std::uint64_t>(out_index) * installed_.shape.stream_bytes);
  } else {
    place.slots = placement_.transport->mapped(context_rank(receiver), place.slots_offset);
  }
  place.payload_slots = place.slots;
  place.engines.in_rotation = installed_.plan.exchange.exists();
  if (place.remote) {
    const int slots = installed_.plan.slots;
    const bool exchange = installed_.plan.exchange.exists();
    place.credit_group =
        static_cast<std::uint32_t>(exchange ? exchange_credit_group(stream, slots) : credit_group(stream, slots));
  }
  // Towards itself a rank has nobody to wake.
  if (!place.remote && stream.peer != installed_.plan.rank) {
    place.sleeping = placement_.transport->sleeping(place.peer);
  }
  if (sender == installed_.plan.rank) {
    place.credit_words = own(place.credits_offset);
  } else if (place.sleeping != nullptr) {
    place.credit_words = placement_.transport->mapped(place.peer, place.credits_offset);
  }
  return place;
}

}  // namespace torii
