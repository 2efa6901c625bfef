// SPDX-License-Identifier: Apache-2.0
// line: an allreduce along the line of all ranks, as somebody outside this project may write it.
//
//   0 -> 1 -> 2 -> 3    every rank combines what comes with its own operand
//   0 <- 1 <- 2 <- 3    and the last rank sends the result back
//
// Cost for n bytes on P ranks: 2 (P - 1) hops, n bytes over every link each way.
// Order: ((0 1) 2) 3 ...
#include <algorithm>

#include "collectives/building/steps.hpp"

namespace torii {
namespace {

ExpressionId order(const PlanRequest& request, int /*block*/, ExpressionPool& pool) {
  ExpressionId value = pool.leaf(0);
  for (int rank = 1; rank < request.topology.ranks(); ++rank) {
    const ExpressionId operands[] = {value, pool.leaf(rank)};
    value = pool.fold(operands, !request.wide_wire);
  }
  return pool.rounded(value);
}

std::string why_not(const PlanRequest& request) {
  std::string reason = why_not_any("line", {Collective::allreduce}, request);
  return reason.empty() ? why_not_canonical(request, order) : reason;
}

Plan plan(const PlanRequest& request, int rank) {
  const int last = request.topology.ranks() - 1;
  const auto up = [&](int peer) { return Link{{.peer = peer, .tag = 0, .wide = request.wide_wire}}; };
  const auto back = [](int peer) { return Link{{.peer = peer, .tag = 1}}; };
  Steps steps(request, rank, 1);
  steps.begin("up");
  if (rank > 0) steps.combine(up(rank - 1));
  steps.combine(Steps::own());
  if (rank < last) {
    steps.send(up(rank + 1));
    steps.begin("back").combine(back(rank + 1));
  }
  steps.keep();
  if (rank > 0) steps.send(back(rank - 1));
  Plan plan = steps.take();
  plan.in_streams_max = plan.out_streams_max = std::min(last, 2);
  return plan;
}

/// 10 us for every hop.
CostEstimate estimate(const EstimateRequest& request) {
  CostEstimate estimate = {.tuning = {.segment_bytes = 1024, .slots = 2, .window = 2}};
  if (request.is_tuned || !request.several_nodes) return estimate;
  estimate.seconds = 1e-5 * 2 * (request.plan.topology.ranks() - 1);
  estimate.why = "by hops";
  return estimate;
}

}  // namespace

extern const Algorithm kLine = {"line", "tests/outside", why_not, plan, order, estimate};

}  // namespace torii
