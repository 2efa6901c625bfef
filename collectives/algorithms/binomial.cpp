// SPDX-License-Identifier: Apache-2.0
// binomial: one binomial tree, up to combine and down to spread; few steps for short vectors.
//
//   8 ranks, root 0:    0                rank r (counted from the root) hangs on r without its lowest one bit
//                     / | \              up:   own + children, the nearest first -> parent
//                    1  2  4             down: parent -> keep, children, the farthest first
//                       |  |\            root: a local stream from the up lane to the down lane
//                       3  5 6
//                            |
//                            7
//
// Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA
// 19(1), 2005, broadcast and reduce.
// Cost: ceil(log2 P) steps up and as many down; a rank sends its vector once up and once down to each child.
// Order: a node folds its own operand, then its children's values by increasing rank counted from the root. From rank 0
// the child at distance d has the operands of ranks d .. 2d-1, so this is the canonical order. A canonical reduce to
// another root therefore combines at rank 0, which delivers the result. Leaves in any intervals (PlanRequest::leaves)
// have the same tree, of subtrees instead of ranks (leaf_tree.hpp).
#include <array>

#include "collectives/building/leaf_tree.hpp"
#include "collectives/building/tree_flows.hpp"

namespace torii {
namespace {

std::string why_not(const PlanRequest& request) {
  if (request.leaves != nullptr) {
    return why_not_leaves("binomial with leaves", {Collective::reduce, Collective::allreduce}, request);
  }
  return why_not_any("binomial",
                     {Collective::barrier, Collective::broadcast, Collective::reduce, Collective::allreduce}, request);
}

int tree_root(const PlanRequest& request) {
  const bool combines_at_0 = request.collective == Collective::reduce && request.determinism == Determinism::canonical;
  return has_root(request.collective) && !combines_at_0 ? request.root : 0;
}

int parent_of(const PlanRequest& request, int rank) {
  const int ranks = request.topology.ranks();
  const int root = tree_root(request);
  const int distance = (rank - root + ranks) % ranks;
  return distance == 0 ? -1 : (root + (distance & (distance - 1))) % ranks;
}

/// The nearest first: at the distances of the powers of two below the rank's own lowest one bit.
std::vector<int> children_of(const PlanRequest& request, int rank) {
  const int ranks = request.topology.ranks();
  const int distance = (rank - tree_root(request) + ranks) % ranks;
  std::vector<int> children;
  for (int bit = 1; distance + bit < ranks && (distance & bit) == 0; bit *= 2) children.push_back((rank + bit) % ranks);
  return children;
}

/// The root has the most children, and with its local stream the most streams: any other rank has fewer children.
void set_stream_maxima(const PlanRequest& request, Plan& plan) {
  if (plan.ranks == 1) return;
  const int children_most = static_cast<int>(children_of(request, tree_root(request)).size());
  plan.in_streams_max = plan.out_streams_max = children_most;
  if (request.collective == Collective::broadcast) plan.in_streams_max = 1;
  if (request.collective == Collective::reduce) plan.out_streams_max = 1;
  if (request.collective == Collective::allreduce) plan.in_streams_max = plan.out_streams_max = children_most + 1;
}

Plan make_plan(const PlanRequest& request, int rank) {
  if (request.leaves != nullptr) return leaf_tree_plan(request, rank);
  PlanBuilder builder(request, rank, Dealing::block, 1);
  const std::vector<int> children = children_of(request, rank);
  const int root = tree_root(request);
  const bool delivers = request.collective == Collective::reduce && root != request.root;
  add_tree_flows(builder, request, 1,
                 {.parent = parent_of(request, rank),
                  .children = children,
                  .down = Delivery::write_in_place,
                  .deliver_to = delivers ? request.root : -1,
                  .up_label = "up tree 0",
                  .down_label = "down tree 0"});
  if (delivers && rank == request.root) add_delivery(builder, root);
  Plan plan = builder.take();
  set_stream_maxima(request, plan);
  return plan;
}

int slots_least(const PlanRequest& request) {
  return request.leaves == nullptr ? 1 : LeafTurn::slots_least(request.leaves->operands_max());
}

ExpressionId order(const PlanRequest& request, int /*block*/, ExpressionPool& pool) {
  if (request.leaves != nullptr) return leaves_order(request, pool);
  return tree_order(
      request, tree_root(request), [](int rank) { return std::array{rank}; },
      [&](int rank) { return children_of(request, rank); }, pool);
}

}  // namespace

extern const Algorithm kBinomial = {
    "binomial", "Thakur, Rabenseifner, Gropp 2005, broadcast and reduce", why_not, make_plan, order, nullptr, nullptr,
    slots_least};

}  // namespace torii
