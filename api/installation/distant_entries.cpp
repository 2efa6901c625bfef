// SPDX-License-Identifier: Apache-2.0
// Takes the memory of entries, and tells senders where it is.
#include "api/installation/distant_entries.hpp"

#include "runtime/plan/ring_rules.hpp"

namespace torii {

/// One piece of memory for all: it is zero, so no sender's words of an earlier team are in it.
void DistantEntries::take_for(const Plan& plan, ChannelRings& rings, int size) {
  const auto number = static_cast<std::size_t>(size);
  const RingSizes& sizes = rings.sizes();
  std::vector<ReceiveEnd*> ends;
  const auto add = [&](int sender, int ring) {
    if (sender == plan.rank || !rings.is_distant(sender)) return;
    ReceiveEnd& end = rings.from(sender, ring);
    if (end.given[number] == 0) ends.push_back(&end);
  };
  const RingKind kind = ring_kind(plan, size);
  for (std::size_t i = 0; i < plan.in.size(); ++i) add(plan.in[i].peer, sizes.ring(kind, ring_of(plan.in, i)));
  const bool exchange = plan.exchange.exists();
  for (int peer = 0; exchange && peer < plan.ranks; ++peer) {
    if (plan.exchange.takes(plan.rank) && plan.exchange.sends(peer)) add(peer, sizes.ring(kind, 0));
  }
  if (ends.empty()) return;
  const std::size_t bytes = static_cast<std::size_t>(sizes.of(kind).entries) * distant_entry_bytes(size);
  memory_.reserve(memory_.size() + 1);
  std::uint64_t offset = team_memory_.take_words(ends.size() * bytes);
  memory_.push_back({static_cast<std::size_t>(offset), ends.size() * bytes});
  for (ReceiveEnd* const end : ends) {
    end->given[number] = offset + 1;
    told_.tell(end->rank, end->grants_offset + number * kLineBytes, offset);
    offset += bytes;
  }
}

}  // namespace torii
