// SPDX-License-Identifier: Apache-2.0
// The call plan: all that is known of a call without its buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/calls/call_description.hpp"
#include "api/calls/unequal_blocks.hpp"
#include "api/context/known_classes.hpp"

namespace torii {

struct CallClass;
struct InstalledPlan;
struct LinearProgram;

/// Numbers of elements, from the least to the most; none if the least is more.
struct CountRange {
  std::size_t least = 1;
  std::size_t most = 0;
  bool contains(std::size_t count) const noexcept { return least <= count && count <= most; }
};

/// Everything about a call that does not depend on its buffers. While no request uses it, it may be filled in for
/// another call of its class (PlanCache).
struct CallPlan {
  CallPlan();
  ~CallPlan();
  CallPlan(const CallPlan&) = delete;
  CallPlan& operator=(const CallPlan&) = delete;

  CallClass* its_class = nullptr;  ///< in a PlanCache
  CallSpec spec;
  std::vector<std::size_t> block_counts;  ///< of a reduce_scatter with blocks of unequal lengths
  const LeafIntervals* leaves = nullptr;
  std::shared_ptr<const ClassPlan> selected;  ///< that of its class
  CallShape shape;
  std::size_t input_bytes = 0;  ///< of the operands that the plan takes, 0 where this rank needs none
  std::size_t result_bytes = 0;
  std::ptrdiff_t input_shift_bytes = 0;  ///< from the user's input back to byte 0 of the vector
  std::ptrdiff_t result_shift_bytes = 0;
  struct {
    std::uint64_t count = 0;
    std::uint64_t kind = 0;
  } record;                         ///< as CallRecord has them
  bool is_finished_at_end = false;  ///< by finish()
  bool sums_as_float = false;       ///< small floats: runs as a call of f32 over copies, which finish() rounds
  bool folds_leaves = false;        ///< the plan's operands are folded from the caller's leaves (leaf_folding.hpp)
  std::uint32_t operands = 1;       ///< of an average
  /// Needs no copies, no user function and nothing at its end: a blocking call may begin without a request.
  bool is_plain = false;
  CountRange counts;  ///< of plain calls of the class that differ from this one in their length alone
  int users = 0;      ///< requests that have started with it and not ended
  /// A channel's installed plan, nullptr until first used there, and its linear program where there is one.
  struct OnChannel {
    OnChannel() noexcept;
    OnChannel(OnChannel&&) noexcept;
    OnChannel& operator=(OnChannel&&) noexcept;
    ~OnChannel();
    std::shared_ptr<InstalledPlan> plan;
    bool is_current = false;  ///< `program` is that of the present layout, if this has one
    bool has_program = false;
    std::unique_ptr<LinearProgram> memory;
    const LinearProgram* program() const noexcept { return has_program ? memory.get() : nullptr; }
  };
  std::vector<OnChannel> on_channels;
  bool has_plan_on(std::size_t channel) const noexcept {
    return channel < on_channels.size() && on_channels[channel].plan != nullptr && on_channels[channel].is_current;
  }
  /// Whether a call can begin: `lengths` has its plan there too.
  bool is_ready_on(std::size_t channel) const noexcept {
    return has_plan_on(channel) && (lengths == nullptr || lengths->has_plan_on(channel));
  }
  /// The broadcast by which the root tells lengths; set for a scatter or gather of unequal blocks that runs as flows.
  std::unique_ptr<CallPlan> lengths;
  bool tells_lengths(const UnequalBlocks* unequal) const noexcept { return lengths != nullptr && !unequal->is_told; }
};

}  // namespace torii
