// SPDX-License-Identifier: Apache-2.0
// The collectives as movements.
#include "perf/limits/movement.hpp"

#include "perf/common/names.hpp"

namespace torii::perf {

std::optional<Movement> movement_of(const torii_call& call, int ranks, size_t element_bytes) {
  Movement movement{.ranks = ranks, .lane_bytes = call.count * element_bytes, .folds = combines(call.collective)};
  switch (call.collective) {
    case TORII_ALLREDUCE:
    case TORII_ALL_GATHER:
    case TORII_BARRIER:
      return movement;
    case TORII_BROADCAST:
      movement.only_source = call.root;
      return movement;
    case TORII_REDUCE:
    case TORII_GATHER:
      movement.only_reader = call.root;
      return movement;
    case TORII_SCATTER:
      movement.only_source = call.root;
      movement.lanes = ranks;
      return movement;
    case TORII_REDUCE_SCATTER:
    case TORII_ALLTOALL:
      movement.lanes = ranks;
      return movement;
    default:
      return std::nullopt;
  }
}

}  // namespace torii::perf
