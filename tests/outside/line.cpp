// SPDX-License-Identifier: Apache-2.0
// line: an allreduce along the line of all ranks, as somebody outside this project may write it.
//
//   0 -> 1 -> 2 -> 3    every rank combines what comes with its own operand
//   0 <- 1 <- 2 <- 3    and the last rank sends the result back
//
// Cost for n bytes on P ranks: 2 (P - 1) hops, n bytes over every link each way.
// Order: ((0 1) 2) 3 ...
#include <algorithm>

#include "collectives/building/plan_builder.hpp"

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
  std::string reason = no_such_collective("line", {Collective::allreduce}, request.collective);
  if (reason.empty()) reason = why_not_any(request);
  return reason.empty() ? why_not_canonical(request, order) : reason;
}

Plan plan(const PlanRequest& request, int rank) {
  PlanBuilder builder(request, rank, Dealing::even, 1);
  const bool is_last = rank == request.topology.ranks() - 1;
  const auto up = [&](int peer) { return Stream{.peer = peer, .tag = 0, .wide = request.wide_wire}; };
  const auto back = [](int peer) { return Stream{.peer = peer, .tag = 1}; };
  Flow sum = {.keep = is_last, .label = "up"};
  if (rank > 0) sum.sources.push_back(builder.in(up(rank - 1)));
  sum.sources.push_back({});
  Flow result = {.keep = true, .label = "back"};
  if (!is_last) {
    sum.targets.push_back(builder.out(up(rank + 1)));
    result.sources.push_back(builder.in(back(rank + 1)));
  }
  if (rank > 0) (is_last ? sum : result).targets.push_back(builder.out(back(rank - 1)));
  std::vector<Flow>& flows = builder.lane().flows;
  flows.push_back(sum);
  if (!is_last) flows.push_back(result);
  Plan plan = builder.take();
  plan.in_streams_max = plan.out_streams_max = std::min(plan.ranks - 1, 2);
  return plan;
}

}  // namespace

extern const Algorithm kLine = {"line", "tests/outside", why_not, plan, order};

}  // namespace torii
