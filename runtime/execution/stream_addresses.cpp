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

OfferLine StreamAddresses::offer_line(int peer, int reader, std::size_t line) const {
  OfferLine result;
  result.peer = context_rank(peer);
  result.line_offset = (reader == installed_.plan.rank ? placement_.rings->offers_offset_from(peer)
                                                       : placement_.rings->offers_offset_at(peer)) +
                       line * kLineBytes;
  result.line = placement_.transport->mapped(context_rank(reader), result.line_offset);
  return result;
}

RingPlace StreamAddresses::common_place(const Stream& stream) const {
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

RingPlace StreamAddresses::place_of(const Stream& stream, const SendEnd& end) const {
  RingPlace place = common_place(stream);
  place.credit_words = end.credits;
  return place;
}

RingPlace StreamAddresses::place_of(const Stream& stream, const ReceiveEnd& end) const {
  RingPlace place = common_place(stream);
  if (!place.remote) return place;
  place.entries_offset = end.given[static_cast<std::size_t>(installed_.uses.distant_size)] - 1;
  place.entries = own(place.entries_offset);
  place.credits_offset = end.credits_offset;
  return place;
}

}  // namespace torii
