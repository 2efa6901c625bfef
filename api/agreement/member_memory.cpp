// SPDX-License-Identifier: Apache-2.0
// Sizes of the parts of a team's memory.
#include "api/agreement/member_memory.hpp"

#include <algorithm>

#include "api/agreement/control_writer.hpp"
#include "api/agreement/team_control.hpp"
#include "api/context/staging_pool.hpp"
#include "runtime/execution/staging.hpp"
#include "runtime/point_to_point/point_to_point.hpp"
#include "runtime/rings/ring_area.hpp"

namespace torii {

std::size_t team_control_bytes(int ranks, const Context& context) noexcept {
  return round_up(
      context.several_nodes() ? agreement_messages_offset() + agreement_messages_bytes(ranks) : sizeof(TeamControl),
      4096);
}

std::size_t team_staging_bytes(int ranks) noexcept {
  return (std::size_t{64} << 20) + static_cast<std::size_t>(ranks) * (std::size_t{4} << 20);
}

std::size_t team_staging_bytes(int ranks, Context& context) noexcept {
  return std::min(team_staging_bytes(ranks), context.staging().bytes_max());
}

std::size_t team_pairs_bytes(int ranks, bool several_nodes) {
  return staging_shape(pair_plan(0, ranks), pair_slot_bytes(ranks), Widening::none, several_nodes).total_bytes;
}

PairsPlace pairs_place(int ranks, Context& context) noexcept {
  return {team_control_bytes(ranks, context) + team_staging_bytes(ranks, context), pair_slot_bytes(ranks)};
}

std::size_t team_rings_bytes(int ranks, Context& context) {
  const bool has_rings = context.settings().standing_rings && context.staging().bytes_max() == SIZE_MAX;
  return has_rings ? rings_bytes_most(ranks) : 0;
}

std::size_t team_memory_bytes(int ranks, Context& context) {
  return team_control_bytes(ranks, context) + team_staging_bytes(ranks, context) +
         team_pairs_bytes(ranks, context.several_nodes()) + team_rings_bytes(ranks, context);
}

}  // namespace torii
