// SPDX-License-Identifier: Apache-2.0
// The collectives as movements.
#include "perf/limits/movement.hpp"

#include "tools/collective_shape.hpp"

namespace torii::perf {

std::optional<Movement> movement_of(const torii_call& call, int ranks, size_t element_bytes) {
  const torii_collective collective = call.collective;
  if (is_prefix(collective)) return std::nullopt;
  Movement movement{.ranks = ranks, .lane_bytes = call.count * element_bytes, .folds = combines(collective)};
  const bool from_root = collective == TORII_BROADCAST || collective == TORII_SCATTER;
  if (has_root(collective)) (from_root ? movement.only_source : movement.only_reader) = call.root;
  if (gives_blocks(collective)) movement.lanes = ranks;
  return movement;
}

}  // namespace torii::perf
