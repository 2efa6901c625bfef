// SPDX-License-Identifier: Apache-2.0
// What a rank gives to a collective call and gets from it: the one table of this for tests, benchmarks and tools, which
// compare with it what the library does.
#pragma once

#include <torii/torii.h>

#include <array>
#include <cstddef>

#include "runtime/plan/operation.hpp"

namespace torii {

inline constexpr std::array kAllCollectives = {TORII_BARRIER,    TORII_BROADCAST,      TORII_REDUCE,   TORII_ALLREDUCE,
                                               TORII_ALL_GATHER, TORII_REDUCE_SCATTER, TORII_ALLTOALL, TORII_SCATTER,
                                               TORII_GATHER,     TORII_SCAN,           TORII_EXSCAN};
static_assert(kAllCollectives.size() == kCollectiveCount);

constexpr Collective collective_of(torii_collective c) { return static_cast<Collective>(c); }
constexpr bool has_root(torii_collective c) { return has_root(collective_of(c)); }
constexpr bool is_prefix(torii_collective c) { return is_prefix(collective_of(c)); }
constexpr bool combines(torii_collective c) { return combines(collective_of(c)); }
constexpr bool is_personalised(torii_collective c) { return is_personalised(collective_of(c)); }
/// The collectives whose size is the whole of one block per rank.
constexpr bool has_blocks(torii_collective c) { return has_block_per_rank(collective_of(c)); }

/// The input has a block for each rank.
constexpr bool gives_blocks(torii_collective c) {
  return c == TORII_REDUCE_SCATTER || c == TORII_ALLTOALL || c == TORII_SCATTER;
}
/// The result has a block of each rank.
constexpr bool gets_blocks(torii_collective c) {
  return c == TORII_ALL_GATHER || c == TORII_ALLTOALL || c == TORII_GATHER;
}

/// A torii_call with the usual fields filled in.
inline torii_call make_call(torii_collective collective, const void* input, void* result, std::size_t count,
                            torii_type type, torii_op op = TORII_SUM, int root = 0) {
  torii_call call = {};
  call.size = sizeof(call);
  call.collective = collective;
  call.input = input;
  call.result = result;
  call.count = count;
  call.type = type;
  call.op = op;
  call.root = root;
  return call;
}

/// Whether what the rank gives is looked at. A broadcast has one vector, its result.
constexpr bool has_input(torii_collective c, int rank, int root) {
  if (c == TORII_BROADCAST || c == TORII_SCATTER) return rank == root;
  return c != TORII_BARRIER;
}
constexpr bool has_result(torii_collective c, int rank, int root) {
  if (c == TORII_REDUCE || c == TORII_GATHER) return rank == root;
  return c != TORII_BARRIER && (c != TORII_EXSCAN || rank != 0);
}

/// The elements of a rank's vectors where it has both, with equal blocks of `count` elements. In place the shorter one
/// lies in the longer one, where the rank's own block is.
struct VectorLengths {
  std::size_t input = 0;
  std::size_t result = 0;
  std::size_t input_at = 0;   ///< in place: elements before the input
  std::size_t result_at = 0;  ///< in place: elements before the result
};
constexpr VectorLengths lengths_of(torii_collective c, std::size_t count, int ranks, int rank) {
  if (c == TORII_BARRIER) return {};
  const std::size_t all = count * static_cast<std::size_t>(ranks);
  const std::size_t own = count * static_cast<std::size_t>(rank);
  return {gives_blocks(c) ? all : count, gets_blocks(c) ? all : count, gets_blocks(c) && !gives_blocks(c) ? own : 0,
          gives_blocks(c) && !gets_blocks(c) ? own : 0};
}

}  // namespace torii
