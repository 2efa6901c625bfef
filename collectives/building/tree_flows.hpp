// SPDX-License-Identifier: Apache-2.0
// One rank's flows in a tree: up to the root, down from it, or both. Shared by all algorithms that use trees.
#pragma once

#include <span>
#include <string_view>

#include "collectives/building/plan_builder.hpp"

namespace torii {

/// A rank's place in one tree. Streams of the tree have the tags 2 x number (up) and 2 x number + 1 (down).
///
/// If several ranks share a node, the tree is one of nodes. Then it consists of as many equal trees of ranks, one for
/// each slice of its blocks. The i-th rank of every node has slice i, gathers the operands of its mates for that slice,
/// and hands its mates the values that come down. So all ranks of a node work and send at once.
struct TreePlace {
  int number = 0;                      ///< of the tree; it carries as many blocks from number * slices as it has slices
  std::span<const int> mates = {};     ///< the ranks of this node in order, this one among them; empty: it is alone
  int parent = -1;                     ///< -1 at the root; in the slice of this rank, as are the children
  std::span<const int> children = {};  ///< in the order in which their values are combined
  Delivery down = Delivery::through_slots;  ///< how finished values travel
  int deliver_to = -1;                      ///< reduce: the root sends its value to this rank and does not keep it
  int taken_from = -1;                      ///< broadcast: the mate that has the vector, -1: it comes from the parent
  std::string_view up_label = {};
  std::string_view down_label = {};
};
/// The tag of the stream by which the root delivers.
inline constexpr int kDeliveryTag = 1 << 20;

/// Adds the lanes of request.collective (barrier, broadcast, reduce, allreduce). Up and down are lanes of their own, so
/// that segments come down while later ones go up. A segment turns round at the root as soon as it is complete. Values
/// go down to the tallest subtree first.
void add_tree_flows(PlanBuilder& builder, const PlanRequest& request, int blocks, const TreePlace& place);

/// Adds the lane of the rank to which the root at `from` delivers.
void add_delivery(PlanBuilder& builder, int from);

/// The plan of a broadcast or reduce along a chain. Each of `ranks`, from the root on, hands segments to the next rank,
/// or takes them from there.
Plan chain_plan(const PlanRequest& request, int rank, const std::vector<int>& ranks, std::string_view up_label,
                std::string_view down_label);
/// Own, then the value of the next rank.
ExpressionId chain_order(const PlanRequest& request, const std::vector<int>& ranks, ExpressionPool& pool);
/// The root, the rank after it, and so on round.
std::vector<int> ranks_from_root(const PlanRequest& request);

/// The expression of the value at node `root`: the operands of its ranks, then its children's values in order.
/// `children_of` gives the children of any node, `ranks_of` its ranks in order.
template <typename RanksOf, typename ChildrenOf>
ExpressionId tree_order(const PlanRequest& request, int root, const RanksOf& ranks_of, const ChildrenOf& children_of,
                        ExpressionPool& pool) {
  // From the leaves to the root: the nodes in the order of a walk from the root, backwards.
  std::vector<int> reached = {root};
  for (std::size_t head = 0; head < reached.size(); ++head) {
    for (const int child : children_of(reached[head])) reached.push_back(child);
  }
  std::vector<ExpressionId> values(reached.size(), kNoExpression);
  std::vector<ExpressionId> operands;
  for (auto at = reached.rbegin(); at != reached.rend(); ++at) {
    operands.clear();
    for (const int rank : ranks_of(*at)) operands.push_back(pool.leaf(rank));
    for (const int child : children_of(*at)) operands.push_back(values[static_cast<std::size_t>(child)]);
    values[static_cast<std::size_t>(*at)] = pool.fold(operands, *at == root || !request.wide_wire);
  }
  return values[static_cast<std::size_t>(root)];
}

}  // namespace torii
