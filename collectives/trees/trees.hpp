// SPDX-License-Identifier: Apache-2.0
// Edge-disjoint spanning trees over the nodes of a torus, and the ranks on each node. Tables are built once per
// (torus, root) and shared by the plans of all ranks.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/plan/plan.hpp"
#include "runtime/topology/topology.hpp"

namespace torii {

/// A cable joins a rank to its neighbour along + in one dimension. Two cables may join the same two ranks.
using CableId = int;
constexpr CableId cable_id(int rank, int dimension) { return 3 * rank + dimension; }

/// A rooted spanning tree over ranks 0 .. ranks-1: of a torus with one rank per node, or of ranks without links.
class Tree {
 public:
  /// The tree that `cables` form on `shape`. Throws Error{internal} if they do not form a tree over all ranks.
  Tree(const Topology& shape, int root, std::span<const CableId> cables);
  /// The tree with these parents (-1 for the root) and no cables. Throws Error{internal} if they do not form a tree.
  explicit Tree(std::vector<int> parents);

  int ranks() const noexcept { return static_cast<int>(parents_.size()); }
  int root() const noexcept { return top_down_.front(); }
  /// -1 for the root.
  int parent(int rank) const noexcept { return parents_[static_cast<std::size_t>(rank)]; }
  /// The cable to the parent; -1 for the root and in a tree without cables.
  CableId cable(int rank) const noexcept { return cables_[static_cast<std::size_t>(rank)]; }
  /// The children by increasing height of their subtrees, ties by rank: the order in which their values are combined.
  std::span<const int> children(int rank) const noexcept;
  /// The edges of the longest path from `rank` down to a leaf.
  int height(int rank) const noexcept { return heights_[static_cast<std::size_t>(rank)]; }
  int height() const noexcept { return height(root()); }

 private:
  void reach_all(const Topology& shape, const std::vector<bool>& is_usable);
  void expect_all_reached() const;
  void measure_heights();
  void list_children();

  std::vector<int> parents_;
  std::vector<CableId> cables_;
  std::vector<int> top_down_;  ///< all ranks, each after its parent
  std::vector<int> heights_;
  std::vector<int> first_child_;  ///< by rank, and one more: index into children_
  std::vector<int> children_;
};

/// The trees of one topology and root: one to three. Each tree carries one block of the vector.
struct TreeTable {
  std::vector<Tree> trees;
  int children_most = 0;          ///< the most children that a rank has, summed over the trees
  int first_neighbours_most = 0;  ///< the most children and parents that a rank has in trees[0] alone
};

/// In place of a root: each tree has a root of its own.
inline constexpr int kOwnRoots = -1;

/// The edge-disjoint trees from `root` on a torus with one rank per node; tree_shapes.cpp says how many a shape has.
/// For kOwnRoots: low_trees(), or the trees from rank 0 rooted at their middles if those are no higher. On a node,
/// whose ranks have no links: heap_trees(). Results are cached.
std::shared_ptr<const TreeTable> find_trees(const Topology& shape, int root);

/// A node of fewer ranks uses the trees of nearly_cubic_torus(), which are equally low.
inline constexpr int kHeapRanksLeast = 5;

/// The trees that trinaryx3 uses for this request.
std::shared_ptr<const TreeTable> find_trees(const PlanRequest& request);

/// The torus of this number of ranks whose extents have the least sum, the largest extent first.
Topology nearly_cubic_torus(int ranks);

/// A topology in the view of algorithms that follow links: a torus of nodes, and the ranks on each node. The ranks of
/// one shared-memory node have no links; each counts as a node of nearly_cubic_torus().
struct Grid {
  explicit Grid(const Topology& topology);
  int node_of(int rank) const { return topology_.node_of(rank); }
  /// The index of the rank among the ranks of its node.
  int place_of(int rank) const { return topology_.place_of(rank); }
  int rank_at(int node, int place) const { return topology_.rank_at(node, place); }
  /// The ranks of a node in the order of their places.
  std::vector<int> ranks_of(int node) const;
  /// The ranks of the node of `rank`, including `rank`.
  std::vector<int> mates_of(int rank) const { return ranks_of(node_of(rank)); }

  Topology torus;
  int per_node;

 private:
  Topology topology_;  ///< all ranks; `torus` if the ranks share one node
};

struct RootedCables {
  int root;
  std::vector<CableId> cables;
};

/// Disjoint trees, one per dimension, whose height is hardly more than the sum of the half extents. Returns nothing for
/// meshes and for one dimension, and if the bounded search finds none (tree_search.cpp).
std::optional<std::vector<RootedCables>> low_trees(const Topology& shape);

/// Three heaps with three children per parent, over at least two ranks, from `root` or from roots of their own
/// (kOwnRoots). They are the trees of ranks without links, which all reach each other equally. Hardly any rank has
/// children in two of them (tree_heaps.cpp).
std::vector<Tree> heap_trees(int ranks, int root);

/// The cables of each tree on a torus or mesh.
std::vector<std::vector<CableId>> disjoint_trees(const Topology& shape, int root);

}  // namespace torii
