// SPDX-License-Identifier: Apache-2.0
// The call plan: all that is known of a call without its buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/team/call_arguments.hpp"
#include "api/team/unequal_blocks.hpp"
#include "collectives/selection/selection.hpp"
#include "runtime/execution/execution.hpp"

namespace torii {

/// Everything about a call that does not depend on its buffers. Made once per (collective, count, type, op, root). Only
/// `on_channels` changes afterwards, so whoever shares the ownership may read the rest at any time.
struct CallPlan : std::enable_shared_from_this<CallPlan> {
  CallArguments arguments;                ///< the key: all but the buffers
  std::vector<std::size_t> block_counts;  ///< to which the arguments' point
  Selected selected;
  Widening widening = Widening::none;
  CallShape shape;
  std::size_t input_bytes = 0;  ///< of the operands that the plan takes, 0 where this rank needs none
  std::size_t result_bytes = 0;
  std::ptrdiff_t input_shift_bytes = 0;  ///< from the user's input back to byte 0 of the vector
  std::ptrdiff_t result_shift_bytes = 0;
  std::uint64_t record_count = 0;  ///< as CallRecord has them
  std::uint64_t record_kind = 0;
  bool is_finished_at_end = false;  ///< by finish()
  bool sums_as_float = false;       ///< small floats: runs as a call of f32 over copies, which finish() rounds
  bool multiplies = false;          ///< runs over a copy of the input, multiplied by the call's factor
  bool folds_leaves = false;        ///< the plan's operands are folded from the caller's leaves (leaf_folding.hpp)
  std::uint32_t operands = 1;       ///< of an average
  int key = 0;                      ///< CallKey::collective of calls that Operations::run_cached() may take
  bool is_plain = false;  ///< Operations::run_cached() may take the call: no arrays, no user function, something to do,
                          ///< nothing to finish
  /// A channel's installed plan, and its linear program where there is one; nullptr until first used there.
  struct OnChannel {
    InstalledPlan* plan = nullptr;
    std::unique_ptr<LinearProgram> program;
  };
  std::vector<OnChannel> on_channels;
  /// The broadcast by which the root tells lengths; set for a scatter or gather of unequal blocks that runs as flows.
  std::unique_ptr<CallPlan> lengths;
  bool tells_lengths(const UnequalBlocks* unequal) const noexcept { return lengths != nullptr && !unequal->is_told; }
};

}  // namespace torii
