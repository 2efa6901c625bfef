// SPDX-License-Identifier: Apache-2.0
// Sizes of the parts of a team's memory.
#include "api/agreement/member_memory.hpp"

#include <algorithm>

#include "api/agreement/control_writer.hpp"
#include "api/agreement/team_control.hpp"
#include "api/context/team_memory_pool.hpp"
#include "runtime/plan/crediting.hpp"
#include "runtime/rings/ring_area.hpp"

namespace torii {
namespace {

/// No team of so many ranks has more on a node.
int most_on_a_node(int ranks, const Context& context) noexcept { return std::min(ranks, context.nodes().most_ranks()); }

}  // namespace

std::size_t team_control_bytes(int ranks, const Context& context) noexcept {
  return round_up(
      context.several_nodes() ? agreement_messages_offset() + agreement_messages_bytes(ranks) : sizeof(TeamControl),
      4096);
}

PairsPlace pairs_place(int ranks, const Context& context) noexcept {
  const PairSizes sizes =
      context.several_nodes() ? distant_pair_sizes(most_on_a_node(ranks, context), ranks) : pair_sizes(ranks);
  return {team_control_bytes(ranks, context), PairArea(sizes).total_bytes(), sizes};
}

bool balances_engines(const Context& context) noexcept { return context.settings().slots >= kSharedSlotsLeast; }

std::size_t team_rings_bytes(int ranks, int channels, Context& context) {
  const std::size_t most = context.team_memory().bytes_max();
  if (!context.several_nodes()) return rings_bytes_most(ranks, channels, most);
  const int here = most_on_a_node(ranks, context);
  return std::max(rings_bytes_most(here, channels, most),
                  distant_rings_bytes_most(here, ranks, channels, balances_engines(context), most));
}

std::size_t team_memory_bytes(int ranks, int channels, Context& context) {
  const PairsPlace pairs = pairs_place(ranks, context);
  return pairs.offset + pairs.bytes + team_rings_bytes(ranks, channels, context);
}

}  // namespace torii
