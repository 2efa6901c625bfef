// SPDX-License-Identifier: Apache-2.0
// A command line as a request to the catalogue, and a lower bound on its time.
#pragma once

#include <cstddef>
#include <memory>

#include "reduce_kernels/types.hpp"
#include "runtime/plan/plan.hpp"
#include "tools/torii-sim/options.hpp"
#include "transports/simulated/network.hpp"

namespace torii::tools {

struct Question {
  PlanRequest request;                          ///< without tuning
  std::shared_ptr<const LeafIntervals> leaves;  ///< to which the request may point
  std::size_t bytes = 0;                        ///< whole elements, and whole blocks if each rank has one
  Type type = Type::f32;
  Op op = Op::sum;
  simulated::NetworkModel network;
};

/// Throws Error{invalid_argument} naming the flag, its value and what would be right.
Question read_question(const SimOptions& options);

/// The least time: what each rank, or all together, have to send or receive, over all that engines and links can do at
/// once, and one message's latency; for an alltoall on a torus also what has to cross its middle. A mesh counts as if
/// all nodes had the links of an inner one.
double bound_us(const SimOptions& options, const Question& question);

}  // namespace torii::tools
