// SPDX-License-Identifier: Apache-2.0
// chain: the ranks of a tree of links in depth-first order, each handing segments to the next.
//
//     0 --+          root 0: depth first 0 1 2 3, so
//     1 --s          broadcast  0 -> 1 -> 2 -> 3, segment after segment
//         |          reduce     0 <- 1 <- 2 <- 3: 2 folds its own operand, then what 3 sends, and so on
//     2 --t-- 3
//
// Source: the pipelined chain of Hourai, Nishida, Oyanagi 2004 taken further (docs/algorithms.md).
// Cost: every directed link carries the vector once, so P - 1 hops for the first segment, then one segment's time on
// the slowest link for each of the others.
// Order: own, then the next rank's value.
#include <algorithm>
#include <array>
#include <numeric>

#include "collectives/building/tree_flows.hpp"

namespace torii {
namespace {

/// From the root on.
std::vector<int> order_of_ranks(const PlanRequest& request) {
  if (const TreeTopology* tree = request.topology.tree()) return tree->depth_first(request.root);
  std::vector<int> order(static_cast<std::size_t>(request.topology.ranks()));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + request.root, order.end());
  return order;
}

std::vector<int> next_of(const std::vector<int>& order, int rank) {
  const auto here = std::find(order.begin(), order.end(), rank);
  return here + 1 == order.end() ? std::vector<int>{} : std::vector<int>{here[1]};
}

ExpressionId order(const PlanRequest& request, int /*block*/, ExpressionPool& pool) {
  const std::vector<int> ranks = order_of_ranks(request);
  return tree_order(
      request, request.root, [](int rank) { return std::array{rank}; }, [&](int rank) { return next_of(ranks, rank); },
      pool);
}

std::string why_not(const PlanRequest& request) {
  std::string reason = no_such_collective("chain", {Collective::broadcast, Collective::reduce}, request.collective);
  if (reason.empty()) reason = why_not_any(request);
  if (!reason.empty()) return reason;
  if (request.topology.kind() == Topology::Kind::torus) {
    return "chain stands on a tree of links; on " + request.topology.text() + " use trinaryx3";
  }
  return why_not_canonical(request, order);
}

Plan make_plan(const PlanRequest& request, int rank) {
  PlanBuilder builder(request, rank, Dealing::even, 1);
  const std::vector<int> ranks = order_of_ranks(request);
  const std::vector<int> children = next_of(ranks, rank);
  const auto here = std::find(ranks.begin(), ranks.end(), rank);
  add_tree_flows(builder, request, 1,
                 {.parent = here == ranks.begin() ? -1 : here[-1],
                  .children = children,
                  .down = Carriage::land,
                  .up_label = "up chain",
                  .down_label = "down chain"});
  Plan plan = builder.take();
  plan.in_streams_max = plan.out_streams_max = plan.ranks == 1 ? 0 : 1;
  return plan;
}

}  // namespace

extern const Algorithm kChain = {"chain", "depth-first pipeline; docs/algorithms.md, Broadcast on trees", why_not,
                                 make_plan, order};

}  // namespace torii
