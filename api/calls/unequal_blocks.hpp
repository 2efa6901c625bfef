// SPDX-License-Identifier: Apache-2.0
// Blocks of a call that have lengths of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "api/calls/call_description.hpp"
#include "runtime/plan/call.hpp"

namespace torii {

/// The blocks of a call with lengths of their own, and how far its buffers reach.
struct UnequalBlocks {
  ExchangeBlocks blocks;
  std::size_t input_bytes = 0;  ///< of a list, and of an alltoall in place: the sum of its blocks
  std::size_t result_bytes = 0;
  bool are_short = false;  ///< all go at once (kAtOnceBytes): where the buffers lie does not matter
  /// The caller has given addresses of blocks. Their offsets count from the first block that is not empty.
  bool lists_input = false;
  bool lists_result = false;
  const std::byte* input_begin = nullptr;  ///< that block of a list
  std::byte* result_begin = nullptr;
  /// An alltoall in place copies its input. Where its blocks are; their offsets are those in the copy.
  std::vector<const std::byte*> copied_from;
  bool has_lists() const noexcept { return lists_input || lists_result; }
  /// The next four are for a scatter or gather that runs as flows (call_lengths.cpp). `lengths` has the bytes of every
  /// rank's block; the root tells them to all ranks, and `shape` is the shape with these lengths. `own_shift_bytes` is
  /// the place of this rank's block in the layout. `shifts` tells how far the root's blocks are from their places in
  /// the layout; it is empty if the blocks follow each other.
  std::vector<std::uint64_t> lengths;
  CallShape shape;
  std::int64_t own_shift_bytes = 0;
  std::vector<std::int64_t> shifts;
  bool is_told = false;
};
/// Reads the arrays of `call` into `unequal`, which may have been another call's: its memory is used again. Throws
/// Error{invalid_argument} for an array that is missing, for lengths that overflow and for an own block that is not as
/// long at both ends.
void read_blocks(const CallDescription& call, int ranks, int rank, UnequalBlocks& unequal);
/// Copies the lengths of a reduce_scatter's blocks. Throws Error{invalid_argument} where they are missing or overflow.
std::vector<std::size_t> read_block_counts(const CallDescription& call, int ranks);
/// These are the lengths of the blocks of a reduce_scatter, to which the call points.
void take_block_counts(std::span<const std::size_t> counts, CallDescription& call) noexcept;

}  // namespace torii
