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
// Source: Trinaryx3 (SACSIS 2012, sections 4.1 and 4.2; docs/algorithms/trinaryx3.md). The trees, also those of shapes
// on which three do not exist, are in tree_shapes.cpp. The trees of an allreduce on a torus, which hang from roots of
// their own and are lower, are in tree_search.cpp. A barrier goes up and down tree 0 alone; on a node the trees are
// only a shape. Cost (T trees, height h, N bytes): the S segments of a tree take h + S - 1 steps up and as many down,
// at the same time. Every cable of a tree carries N/T bytes in each direction, one message per segment. Order: in each
// tree the own operand, then the children's by increasing height of their subtrees, ties by rank. Granules are assigned
// to trees by their position, so that an element's bits do not depend on the vector's length.
#include <algorithm>

#include "collectives/building/tree_flows.hpp"
#include "collectives/trees/trees.hpp"

namespace torii {
namespace {

constexpr std::string_view kUpLabels[] = {"up tree 0", "up tree 1", "up tree 2"};
constexpr std::string_view kDownLabels[] = {"down tree 0", "down tree 1", "down tree 2"};

std::string why_not(const PlanRequest& request) {
  std::string reason = why_not_any(
      "trinaryx3", {Collective::barrier, Collective::broadcast, Collective::reduce, Collective::allreduce}, request);
  if (reason.empty() && combines(request.collective) && request.determinism == Determinism::canonical) {
    reason = "its order follows the trees of the topology and is not the canonical one; binomial and node honour that";
  }
  return reason;
}

/// Every node but the root has a parent in each tree; in allreduce the root has a local stream instead.
void set_stream_maxima(const PlanRequest& request, const Grid& grid, const TreeTable& table, Plan& plan) {
  if (plan.ranks == 1) return;
  const int trees = static_cast<int>(table.trees.size());
  const int parents = grid.torus.ranks() > 1 ? trees : 0;
  const int mates = trees * (grid.per_node - 1);
  int root_children = 0;
  for (const Tree& tree : table.trees) root_children += static_cast<int>(tree.children(tree.root()).size());
  switch (request.collective) {
    case Collective::barrier:
      plan.in_streams_max = plan.out_streams_max = table.first_neighbours_most + grid.per_node - 1;
      break;
    case Collective::broadcast:
      plan.in_streams_max = parents > 0 ? parents + mates : trees;
      plan.out_streams_max = table.children_most + mates;
      break;
    case Collective::reduce:
      plan.in_streams_max = std::max(table.children_most, root_children + mates) + mates;
      plan.out_streams_max = trees + mates;
      break;
    default:
      plan.in_streams_max = plan.out_streams_max = table.children_most + trees + 2 * mates;
  }
}

/// Tokens go by one rank of each node, the first.
void add_barrier(PlanBuilder& builder, const PlanRequest& request, const Grid& grid, const Tree& tree) {
  const std::vector<int> mates = grid.mates_of(builder.rank());
  const int node = grid.node_of(builder.rank());
  std::vector<int> children;
  int parent = mates.front();
  if (builder.rank() == parent) {
    children.assign(mates.begin() + 1, mates.end());
    for (const int child : tree.children(node)) children.push_back(grid.rank_at(child, 0));
    parent = tree.parent(node) < 0 ? -1 : grid.rank_at(tree.parent(node), 0);
  }
  add_tree_flows(builder, request, 1,
                 {.parent = parent, .children = children, .up_label = kUpLabels[0], .down_label = kDownLabels[0]});
}

/// The flows in one tree of a rank that combines and spreads its slice of the tree's blocks.
void add_tree(PlanBuilder& builder, const PlanRequest& request, const Grid& grid, const TreeTable& table, int number) {
  const auto n = static_cast<std::size_t>(number);
  const Tree& tree = table.trees[n];
  const int rank = builder.rank();
  const int node = grid.node_of(rank);
  const int slice = grid.place_of(rank);
  const std::vector<int> mates = grid.mates_of(rank);
  std::vector<int> children;
  for (const int child : tree.children(node)) children.push_back(grid.rank_at(child, slice));
  const bool is_roots_mate = has_root(request.collective) && node == grid.node_of(request.root) && rank != request.root;
  add_tree_flows(builder, request, static_cast<int>(table.trees.size()) * grid.per_node,
                 {.number = number,
                  .mates = mates,
                  .parent = tree.parent(node) < 0 ? -1 : grid.rank_at(tree.parent(node), slice),
                  .children = children,
                  .down = Delivery::write_in_place,
                  .deliver_to = is_roots_mate ? request.root : -1,
                  .taken_from = is_roots_mate ? request.root : -1,
                  .up_label = kUpLabels[n],
                  .down_label = kDownLabels[n]});
}

Plan make_plan(const PlanRequest& request, int rank) {
  const Grid grid(request.topology);
  const std::shared_ptr<const TreeTable> table = find_trees(request);
  const int trees = static_cast<int>(table->trees.size());
  const bool is_barrier = request.collective == Collective::barrier;
  PlanBuilder builder(request, rank, Dealing::block_cyclic, is_barrier ? 1 : trees * grid.per_node);
  if (is_barrier) add_barrier(builder, request, grid, table->trees.front());
  for (int number = 0; !is_barrier && number < trees; ++number) add_tree(builder, request, grid, *table, number);
  Plan plan = builder.take();
  set_stream_maxima(request, grid, *table, plan);
  return plan;
}

ExpressionId order(const PlanRequest& request, int block, ExpressionPool& pool) {
  const Grid grid(request.topology);
  const std::shared_ptr<const TreeTable> table = find_trees(request);
  const Tree& tree = table->trees[static_cast<std::size_t>(block / grid.per_node)];
  return tree_order(
      request, tree.root(), [&](int node) { return grid.ranks_of(node); },
      [&](int node) { return tree.children(node); }, pool);
}

}  // namespace

extern const Algorithm kTrinaryx3 = {"trinaryx3",
                                     "Trinaryx3, SACSIS 2012, sections 4.1 and 4.2",
                                     why_not,
                                     make_plan,
                                     order,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     6};

}  // namespace torii
