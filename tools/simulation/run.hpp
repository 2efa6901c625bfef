// SPDX-License-Identifier: Apache-2.0
// One call of all ranks on virtual time: install() installs the plans, Execution runs them, with one object per
// rank and one thread for all.
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

/// A call: what every rank runs, and on which network.
struct Call {
  std::vector<Plan> plans;  ///< of all ranks, in order
  PlanRequest request;      ///< from which they were made
  CallShape shape;
  NetworkModel network;
  Widening widening = Widening::none;  ///< of what streams marked wide hold
  std::optional<double> reduce_GBps;   ///< operands of a step after its first, per second; none: no time
  double skew_us = 0;                  ///< ranks start within this time, by network.seed
  bool lists = true;                   ///< ranks run linear programs where a team would; false: lanes
  /// Parts of the network that threads move on at once; the outcome does not depend on them. 0: as many as pay. One if
  /// ranks share links, or there is `fill`, jitter or no alpha.
  int parts = 0;
  int watched = -1;  ///< the rank whose engines are recorded; -1: none
  /// Writes the operand of `rank`, or its operands, one every shape.operand_stride_bytes. Without it nothing is folded
  /// or copied, and vectors take no memory.
  std::function<void(int rank, std::byte* operand)> fill;
  /// By rank, for a pairwise exchange with unequal blocks, without `fill`. None: all blocks have shape.block_bytes.
  std::vector<ExchangeBlocks> blocks;
};

struct Outcome {
  Time time = 0;  ///< from the first start to the last end
  std::uint64_t messages = 0;
  std::uint64_t credits = 0;
  int lists = 0;                          ///< ranks that have run a linear program
  std::vector<std::uint64_t> link_bytes;  ///< by LinkId
  std::vector<EngineUse> uses;            ///< of the watched rank
  std::uint64_t messages_per_segment = 0;
  std::vector<std::uint64_t> link_messages;  ///< by LinkId, per segment
  /// By rank and segment: when the rank had sent or received the messages of that many segments. Empty for ranks that
  /// neither send nor receive.
  std::vector<std::vector<Time>> progress;
  /// With `fill`, by rank: the whole vector of the layout (in reduce_scatter only the own block is meaningful).
  std::vector<std::vector<std::byte>> results;
};

/// The layout, type and kernel of a call of `bytes` bytes (of all blocks together), as a team makes them. `fold` is for
/// calls with data; the caller looks it up.
CallShape call_shape(const PlanRequest& request, const Plan& plan, Type type, std::size_t bytes);

/// Throws Error{internal} if ranks wait for each other for ever, naming the first, and {unsupported} for a torus with
/// several ranks on each node.
Outcome run(const Call& call);
/// The same with another shape.
Outcome run(const Call& call, const CallShape& shape);

}  // namespace torii::simulated
