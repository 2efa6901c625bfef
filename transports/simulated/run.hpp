// SPDX-License-Identifier: Apache-2.0
// One call of all ranks on virtual time: plans put in place by install(), run by Execution, one object per rank and one
// thread for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/execution/execution.hpp"
#include "runtime/plan/plan.hpp"
#include "transports/simulated/network.hpp"

namespace torii::simulated {

/// A call: what every rank runs, and on what.
struct Call {
  std::vector<Plan> plans;  ///< of all ranks, in order
  PlanRequest request;      ///< that they were made from
  CallShape shape;
  NetworkModel network;
  bool wide = false;                  ///< streams marked wide hold float
  std::optional<double> reduce_GBps;  ///< operands folded per second, but for the first of a step; none: in no time
  double skew_us = 0;                 ///< ranks start within so long, by network.seed
  bool lists = true;                  ///< ranks run straight lists where a team would; false: lanes
  int watched = -1;                   ///< the rank whose engines are watched; -1: none
  /// Writes the operand of `rank`. Without it nothing is folded or copied, and vectors take no memory.
  std::function<void(int rank, std::byte* operand)> fill;
  /// By rank, of a sweep whose blocks have lengths of their own, without `fill`. None: all are of shape.block_bytes.
  std::vector<SweepBlocks> blocks;
};

struct Outcome {
  Time time = 0;  ///< from the first start to the last end
  std::uint64_t messages = 0;
  std::uint64_t credits = 0;
  int lists = 0;                          ///< ranks that have run a straight list
  std::vector<std::uint64_t> link_bytes;  ///< by LinkId
  std::vector<EngineUse> uses;            ///< of the watched rank
  std::uint64_t messages_per_segment = 0;
  std::vector<std::uint64_t> link_messages;  ///< by LinkId, per segment
  /// By rank and segment: when so many messages had left the rank or reached it as that many segments have. Nothing for
  /// ranks that neither send nor receive.
  std::vector<std::vector<Time>> progress;
  /// With `fill`, by rank: the whole vector as the layout counts it (in reduce_scatter the own block alone is meant).
  std::vector<std::vector<std::byte>> results;
};

/// The layout, type and kernel of a call of `bytes` bytes (of all blocks together), as a team makes them. `fold` is for
/// calls with data, and is looked up by the caller.
CallShape call_shape(const PlanRequest& request, const Plan& plan, Type type, std::size_t bytes);

/// Throws Error{internal} when ranks are left waiting for one another, naming the first, and {unsupported} for a torus
/// with several ranks on each node.
Outcome run(const Call& call);

}  // namespace torii::simulated
