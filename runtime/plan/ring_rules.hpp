// SPDX-License-Identifier: Apache-2.0
// Rules of rings that outlive plans: which ring a stream uses, and when its receiver publishes how many messages it has
// taken. The verifier proves plans with them (ExecutorRules).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/plan/plan.hpp"

namespace torii {

/// The ring of a stream, among those from its sender to its receiver: its place in the order of tags. Both ends compute
/// it, each from its own streams: `streams` are all in-streams or all out-streams of a plan. Streams from a rank to
/// itself need no ring.
inline int ring_of(std::span<const Stream> streams, std::size_t stream) noexcept {
  const Stream& one = streams[stream];
  return static_cast<int>(std::ranges::count_if(
      streams, [&](const Stream& other) { return other.peer == one.peer && other.tag < one.tag; }));
}

/// The rings that a plan uses between each two ranks: those of its so many streams.
inline int rings_of(const Plan& plan) noexcept {
  int rings = plan.exchange.exists() ? 1 : 0;
  for (const std::vector<Stream>* const streams : {&plan.in, &plan.out}) {
    for (std::size_t i = 0; i < streams->size(); ++i) {
      if ((*streams)[i].peer != plan.rank) rings = std::max(rings, ring_of(*streams, i) + 1);
    }
  }
  return rings;
}

/// After so many messages a receiver publishes its count: how many messages of the stream it has taken, in their order.
/// A message that is taken before earlier ones counts only with these. A count that may be `every` - 1 messages late
/// costs as many slots, and `slots_least` of them are needed.
constexpr int published_every(int slots, int slots_least) noexcept {
  return std::max(1, std::min(slots / 4, slots - slots_least + 1));
}

/// The same for messages that fit into the ring's entries. It does not depend on the plan: what one call leaves
/// unpublished must not stop the next one.
constexpr int entry_published_every(int entries) noexcept { return std::max(1, entries / 4); }

}  // namespace torii
