// SPDX-License-Identifier: Apache-2.0
// Blocks of a call that have lengths of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/team/call_arguments.hpp"
#include "runtime/execution/execution.hpp"

namespace torii {

/// The blocks of a call with lengths of their own, and how far its buffers reach.
struct UnequalBlocks {
  SweepBlocks blocks;
  std::size_t input_bytes = 0;
  std::size_t result_bytes = 0;
  /// Of a scatter or gather that runs as flows (call_lengths.cpp): bytes of every rank's block, which the root tells
  /// all ranks, then the shape with these lengths, where this rank's block stands in the layout, and at the root how
  /// far its blocks stand from where the layout has them; empty where they follow each other.
  std::vector<std::uint64_t> lengths;
  CallShape shape;
  std::int64_t own_shift_bytes = 0;
  std::vector<std::int64_t> shifts;
  bool is_told = false;
};
/// Reads the arrays of `arguments`. Throws Error{invalid_argument} for one that is missing, for lengths that overflow
/// and for an own block that is not as long at both ends.
std::unique_ptr<UnequalBlocks> read_blocks(const CallArguments& arguments, int ranks, int rank);
/// Copies the lengths of a reduce_scatter's blocks. Throws Error{invalid_argument} where they are missing or overflow.
std::vector<std::size_t> read_block_counts(const CallArguments& arguments, int ranks);

}  // namespace torii
