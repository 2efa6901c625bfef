// SPDX-License-Identifier: Apache-2.0
// Sizes of the parts of a team's memory.
#include "api/agreement/member_memory.hpp"

#include <algorithm>

#include "api/agreement/control_writer.hpp"
#include "api/agreement/team_control.hpp"
#include "api/context/team_memory_pool.hpp"
#include "runtime/execution/staging.hpp"
#include "runtime/plan/crediting.hpp"
#include "runtime/point_to_point/pair_rings.hpp"
#include "runtime/point_to_point/slot_streams.hpp"
#include "runtime/rings/ring_area.hpp"

namespace torii {

std::size_t team_control_bytes(int ranks, const Context& context) noexcept {
  return round_up(
      context.several_nodes() ? agreement_messages_offset() + agreement_messages_bytes(ranks) : sizeof(TeamControl),
      4096);
}

std::size_t team_pairs_bytes(int ranks, bool several_nodes) {
  const StagingShape slots = staging_shape(pair_plan(0, ranks), pair_slot_bytes(ranks), Widening::none, several_nodes);
  return std::max(slots.total_bytes, PairArea(pair_sizes(ranks)).total_bytes());
}

PairsPlace pairs_place(int ranks, const Context& context, bool has_rings) noexcept {
  return {team_control_bytes(ranks, context), team_pairs_bytes(ranks, context.several_nodes()), pair_slot_bytes(ranks),
          has_rings ? std::optional(pair_sizes(ranks)) : std::nullopt};
}

bool balances_engines(const Context& context) noexcept { return context.settings().slots >= kSharedSlotsLeast; }

std::size_t team_rings_bytes(int ranks, int channels, Context& context) {
  const std::size_t most = context.team_memory().bytes_max();
  if (!context.several_nodes()) return rings_bytes_most(ranks, channels, most);
  const int here = std::min(ranks, context.nodes().most_ranks());
  return std::max(rings_bytes_most(here, channels, most),
                  distant_rings_bytes_most(here, ranks, channels, balances_engines(context), most));
}

std::size_t team_memory_bytes(int ranks, int channels, Context& context) {
  return team_control_bytes(ranks, context) + team_pairs_bytes(ranks, context.several_nodes()) +
         team_rings_bytes(ranks, channels, context);
}

}  // namespace torii
