// SPDX-License-Identifier: Apache-2.0
// trinaryx3: three edge-disjoint spanning trees of a torus, each with a third of the vector, all pipelined.
//
//            tree 0: block 0        tree 1: block 1        tree 2: block 2
//                 root                   root                   root          up lane:   own + children -> parent
//                / x                    / y                    / z            down lane: parent -> keep, children
//               o---o---o              o---o---o              o---o---o
//               | y                    | z                    | x             root: up lane hands over to down lane
//               o                      o                      o
//
// Source: Trinaryx3 (SACSIS 2012, sections 4.1 and 4.2; docs/algorithms.md). The trees, also those of shapes on which
// three do not exist, stand in tree_shapes.cpp. A barrier goes up and down tree 0 alone; on a node the trees are only a
// shape. Cost (T trees, height h, N bytes): the S segments of a tree take h + S - 1 steps up and as many down, at the
// same time; every cable of a tree carries N/T bytes in each direction, one message per segment. Order: in each tree
// the own operand, then the children's by increasing height of their subtrees, ties by rank. Granules are dealt to
// trees by their position, so that an element's bits do not depend on the vector's length.
#include <algorithm>

#include "collectives/algorithms.hpp"
#include "collectives/tree_flows.hpp"
#include "collectives/trees.hpp"

namespace torii {
namespace {

constexpr std::string_view kUpLabels[] = {"up tree 0", "up tree 1", "up tree 2"};
constexpr std::string_view kDownLabels[] = {"down tree 0", "down tree 1", "down tree 2"};

std::string why_not(const PlanRequest& request) {
  std::string reason = no_such_collective(
      "trinaryx3", {Collective::barrier, Collective::broadcast, Collective::reduce, Collective::allreduce},
      request.collective);
  if (reason.empty()) reason = why_not_any(request);
  if (reason.empty() && combines(request.collective) && request.determinism == Determinism::canonical) {
    reason = "its order follows the trees of the topology and is not the canonical one; binomial and node honour that";
  }
  return reason;
}

std::shared_ptr<const TreeTable> trees_of(const PlanRequest& request) {
  return find_trees(request.topology, has_root(request.collective) ? request.root : 0);
}

/// Every rank but the root has a parent in each tree; in allreduce the root has a hand-over instead.
void set_stream_maxima(const PlanRequest& request, const TreeTable& table, Plan& plan) {
  if (plan.ranks == 1) return;
  const int trees = static_cast<int>(table.trees.size());
  switch (request.collective) {
    case Collective::barrier:
      plan.in_streams_max = plan.out_streams_max = table.first_neighbours_most;
      break;
    case Collective::broadcast:
      plan.in_streams_max = trees;
      plan.out_streams_max = table.children_most;
      break;
    case Collective::reduce:
      plan.in_streams_max = table.children_most;
      plan.out_streams_max = trees;
      break;
    default:
      plan.in_streams_max = plan.out_streams_max = table.children_most + trees;
  }
}

Plan make_plan(const PlanRequest& request, int rank) {
  const std::shared_ptr<const TreeTable> table = trees_of(request);
  const int blocks = request.collective == Collective::barrier ? 1 : static_cast<int>(table->trees.size());
  PlanBuilder builder(request, rank, Dealing::dealt, blocks);
  for (int number = 0; number < blocks; ++number) {
    const auto n = static_cast<std::size_t>(number);
    const Tree& tree = table->trees[n];
    add_tree_flows(builder, request, blocks,
                   {.number = number,
                    .parent = tree.parent(rank),
                    .children = tree.children(rank),
                    .down = Carriage::land,
                    .up_label = kUpLabels[n],
                    .down_label = kDownLabels[n]});
  }
  Plan plan = builder.take();
  set_stream_maxima(request, *table, plan);
  return plan;
}

ExpressionId order(const PlanRequest& request, int block, ExpressionPool& pool) {
  const std::shared_ptr<const TreeTable> table = trees_of(request);
  const Tree& tree = table->trees[static_cast<std::size_t>(block)];
  return tree_order(
      request, tree.root(), [&](int rank) { return tree.children(rank); }, pool);
}

}  // namespace

const Algorithm kTrinaryx3 = {"trinaryx3", "Trinaryx3, SACSIS 2012, sections 4.1 and 4.2", why_not, make_plan, order};

}  // namespace torii
