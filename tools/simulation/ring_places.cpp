// SPDX-License-Identifier: Apache-2.0
// Places rings in the memory of ranks, and joins the two ends of each.
#include "tools/simulation/ring_places.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "runtime/base/index.hpp"
#include "runtime/base/status.hpp"
#include "runtime/fabric/words.hpp"
#include "runtime/plan/crediting.hpp"
#include "runtime/plan/ring_rules.hpp"

namespace torii::simulated {
namespace {

/// Entries of all calls have the same length here, so there is one size of them.
constexpr int kSize = 0;

/// From an entry with its payload, or a place in the outbox, to the next one.
std::size_t place_bytes(const Call& call, const CallShape& shape) {
  const std::size_t bundle_bytes =
      shape.layout.segment_bytes() * static_cast<std::size_t>(call.plans.front().bundle_max);
  return kLineBytes + round_up(widened(bundle_bytes, call.widening), kLineBytes);
}

bool has_one_message_per_segment(const Call& call) {
  return std::ranges::all_of(call.plans, [](const Plan& plan) {
    return std::ranges::all_of(plan.out, [](const Stream& stream) { return stream.messages_per_segment == 1; });
  });
}

/// So many messages share a credit as in a team, but at most half of the entries. A team gives a plan more entries than
/// it needs slots, if credits are late by a group. Here there are none to spare. With one message per segment a group
/// only adds waits for an earlier segment, so nothing deadlocks.
std::uint32_t credit_group(const Call& call, const CallShape& shape) {
  const Plan& plan = call.plans.front();
  if (!has_one_message_per_segment(call)) return 1;
  const RingSizes team = distant_ring_sizes(1, plan.ranks, 1, plan.slots >= kSharedSlotsLeast);
  const std::size_t message_bytes = std::min(shape.layout.segment_bytes(), shape.layout.longest_bytes());
  std::uint32_t group = team.of(ring_kind(plan, distant_size_of(plan, message_bytes, call.widening))).credit_group;
  const auto entries = std::bit_ceil(static_cast<std::uint32_t>(plan.slots));
  while (group > 1 && (2 * group > entries || entries % group != 0)) group /= 2;
  return group;
}

/// A power of two: as many as the plan has slots, or as the call has messages on a stream: then nobody ever waits for
/// an entry. Rings from a rank to itself have lines, which take more memory than all else that a rank of a short call
/// has. Engines balance their load where there are enough entries, so there these are as many as slots.
int entries_of(const Call& call, const CallShape& shape) {
  const Plan& plan = call.plans.front();
  if (plan.slots > kRingEntriesMax) {
    throw Error(Status::unsupported, "the plan needs " + std::to_string(plan.slots) +
                                         " slots of each stream; rings have at most " +
                                         std::to_string(kRingEntriesMax) + " entries");
  }
  const auto slots = std::bit_ceil(static_cast<std::uint64_t>(plan.slots));
  if (plan.exchange.exists() || !call.network.engine_rates.empty()) return static_cast<int>(slots);
  std::int64_t messages = 1;
  for (const Plan& one : call.plans) {
    for (const Stream& stream : one.out) {
      messages = std::max(messages, shape.layout.segments() * stream.bundles_per_segment());
    }
  }
  return static_cast<int>(std::min(slots, std::bit_ceil(static_cast<std::uint64_t>(messages))));
}

RingSizes sizes_of(const Call& call, const CallShape& shape) {
  const Plan& plan = call.plans.front();
  RingSizes sizes = {.entries = entries_of(call, shape), .team_ranks = plan.ranks};
  sizes.kinds.fill({sizes.entries, credit_group(call, shape)});
  // Each message of a call has a place for each entry.
  sizes.outbox_bytes = index(plan.out_streams_max) * index(sizes.entries) * place_bytes(call, shape);
  return sizes;
}

/// The place of the other end of rank `rank`'s stream among the `ends` of `plan`.
int other_end(const Plan& plan, const std::vector<Stream>& ends, int rank, int tag) {
  const auto at = std::ranges::find_if(ends, [=](const Stream& one) { return one.peer == rank && one.tag == tag; });
  if (at != ends.end()) return static_cast<int>(at - ends.begin());
  throw Error(Status::internal, "the plan of rank " + std::to_string(plan.rank) + " has no stream of rank " +
                                    std::to_string(rank) + " with tag " + std::to_string(tag));
}

}  // namespace

RingPlaces::RingPlaces(const Call& call, const CallShape& shape) : call_(call), area_(sizes_of(call, shape)) {
  const Plan& plan = call.plans.front();
  entry_bytes_ = call.fill ? place_bytes(call, shape) : sizeof(std::uint64_t);
  const std::size_t entries = index(area_.sizes().entries);
  words_.in_bytes = entries * entry_bytes_;
  words_.credit_bytes = entries * sizeof(std::uint64_t);
  words_.credits_begin = entries_offset(plan.in_streams_max);
  arena_bytes_ = round_up(credits_offset(plan.out_streams_max), kLineBytes);
  if (!call.fill) return;
  outbox_offset_ = arena_bytes_;
  arena_bytes_ += area_.sizes().outbox_bytes;
}

std::uint64_t RingPlaces::entries_offset(int in_stream) const noexcept { return index(in_stream) * words_.in_bytes; }

std::uint64_t RingPlaces::credits_offset(int out_stream) const noexcept {
  return words_.credits_begin + index(out_stream) * words_.credit_bytes;
}

void RingPlaces::add_out(ChannelRings& rings, Transport& transport, int peer, int ring, int out_stream,
                         int in_stream) const {
  SendEnd& end = rings.add_to(peer, ring);
  end.rank = end.peer = peer;
  end.credits = transport.mapped(transport.rank(), credits_offset(out_stream));
  end.granted[kSize] = entries_offset(in_stream) + 1;
}

void RingPlaces::add_in(ChannelRings& rings, int peer, int ring, int in_stream, int out_stream) const {
  ReceiveEnd& end = rings.add_from(peer, ring);
  end.rank = end.peer = peer;
  end.credits_offset = credits_offset(out_stream);
  end.given[kSize] = entries_offset(in_stream) + 1;
}

void RingPlaces::add_ends(int rank, Transport& transport, ChannelRings& rings) const {
  const Plan& plan = call_.plans[index(rank)];
  rings.place_outbox(outbox_offset_);
  if (plan.exchange.exists()) {
    add_exchange(plan, transport, rings);
  } else {
    add_flows(plan, transport, rings);
  }
}

void RingPlaces::add_flows(const Plan& plan, Transport& transport, ChannelRings& rings) const {
  const auto ring = [&](const std::vector<Stream>& streams, std::size_t stream) {
    return area_.sizes().ring(ring_kind(plan, kSize), ring_of(streams, stream));
  };
  for (std::size_t i = 0; i < plan.out.size(); ++i) {
    const Stream& stream = plan.out[i];
    if (stream.peer == plan.rank) continue;
    const Plan& receiver = call_.plans[index(stream.peer)];
    add_out(rings, transport, stream.peer, ring(plan.out, i), static_cast<int>(i),
            other_end(receiver, receiver.in, plan.rank, stream.tag));
  }
  for (std::size_t i = 0; i < plan.in.size(); ++i) {
    const Stream& stream = plan.in[i];
    if (stream.peer == plan.rank) continue;
    const Plan& sender = call_.plans[index(stream.peer)];
    add_in(rings, stream.peer, ring(plan.in, i), static_cast<int>(i),
           other_end(sender, sender.out, plan.rank, stream.tag));
  }
}

void RingPlaces::add_exchange(const Plan& plan, Transport& transport, ChannelRings& rings) const {
  const PairwiseExchange& exchange = plan.exchange;
  const int ring = area_.sizes().ring(RingKind::exchange, 0);
  for (int peer = 0; peer < plan.ranks; ++peer) {
    if (peer == plan.rank) continue;
    if (exchange.sends(plan.rank) && exchange.takes(peer)) {
      add_out(rings, transport, peer, ring, exchange.out_stream(plan.rank, peer), exchange.in_stream(peer, plan.rank));
    }
    if (exchange.takes(plan.rank) && exchange.sends(peer)) {
      add_in(rings, peer, ring, exchange.in_stream(plan.rank, peer), exchange.out_stream(peer, plan.rank));
    }
  }
}

void RingPlaces::complete(InstalledPlan& plan) const {
  const auto set_stride = [&](Ring& ring) {
    if (ring.remote()) ring.place().stride = entry_bytes_;
  };
  for (InstalledIn& in : plan.in) set_stride(in.ring);
  for (InstalledOut& out : plan.out) set_stride(out.ring);
  for (ExchangePeer& peer : plan.exchange.peers) {
    set_stride(peer.in.ring);
    set_stride(peer.out.ring);
  }
  take_grants(plan, arena_bytes_);
  // A plan may need all of its slots on the rings from the rank to itself, which tell at once what has been taken.
  plan.uses.every_entry = plan.uses.every_payload = 1;
}

}  // namespace torii::simulated
