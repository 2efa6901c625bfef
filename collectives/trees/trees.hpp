// SPDX-License-Identifier: Apache-2.0
// Edge-disjoint spanning trees over the nodes of a torus, and the ranks on each node. Pure tables, built once per
// (torus, root) and shared by the plans of all ranks.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/plan/plan.hpp"
#include "runtime/topology/topology.hpp"

namespace torii {

/// A cable joins a rank to its neighbour along + in one dimension. Two ranks may be joined by two of them.
using CableId = int;
constexpr CableId cable_id(int rank, int dimension) { return 3 * rank + dimension; }

/// A rooted spanning tree over ranks 0 .. ranks-1: of a torus with one rank per node, or of ranks without links.
class Tree {
 public:
  /// The tree that `cables` form on `shape`. Throws Error{internal} when they form none, or not over all ranks.
  Tree(const Topology& shape, int root, std::span<const CableId> cables);
  /// The tree of these parents, -1 for the root's, over no cables. Throws Error{internal} when they form none.
  explicit Tree(std::vector<int> parents);

  int ranks() const noexcept { return static_cast<int>(parents_.size()); }
  int root() const noexcept { return top_down_.front(); }
  /// -1 for the root.
  int parent(int rank) const noexcept { return parents_[static_cast<std::size_t>(rank)]; }
  /// The cable to the parent; -1 for the root, and where there are no cables.
  CableId cable(int rank) const noexcept { return cables_[static_cast<std::size_t>(rank)]; }
  /// By increasing height of their subtrees, ties by rank: the order in which values are combined.
  std::span<const int> children(int rank) const noexcept;
  /// Edges on the longest way from `rank` down to a leaf.
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
  std::vector<int> first_child_;  ///< ranks + 1 entries, into children_
  std::vector<int> children_;
};

/// The trees of one topology and root: one to three, each with one block of the vector.
struct TreeTable {
  std::vector<Tree> trees;
  int children_most = 0;          ///< the most children any rank has, summed over the trees
  int first_neighbours_most = 0;  ///< the most children and parents any rank has in trees[0] alone
};

/// Each tree from a root of its own.
inline constexpr int kOwnRoots = -1;

/// The edge-disjoint trees from `root` on a torus with one rank per node (tree_shapes.cpp tells how many a shape has),
/// cached. For kOwnRoots the lower of: low_trees(), and the trees from rank 0, each turned to hang from its middle. On
/// a node, whose ranks have no links, heap_trees().
std::shared_ptr<const TreeTable> find_trees(const Topology& shape, int root);

/// On a node of fewer ranks the trees are those of nearly_cubic_torus(), which are as low.
inline constexpr int kHeapRanksLeast = 5;

/// The trees that trinaryx3 uses for this request.
std::shared_ptr<const TreeTable> find_trees(const PlanRequest& request);

/// Whether no cable is in two trees.
bool are_disjoint(const TreeTable& table);

/// The torus of so many ranks whose extents have the least sum, the largest first.
Topology nearly_cubic_torus(int ranks);

/// A topology as algorithms that follow the links see it: a torus of nodes and the ranks on each. The ranks of one
/// shared-memory node have no links to share; each is given a node of its own on nearly_cubic_torus().
struct Grid {
  explicit Grid(const Topology& topology);
  int node_of(int rank) const { return topology_.node_of(rank); }
  /// Which of its node's ranks it is, from 0.
  int place_of(int rank) const { return topology_.place_of(rank); }
  int rank_at(int node, int place) const { return topology_.rank_at(node, place); }
  /// The ranks of a node in the order of their places there.
  std::vector<int> ranks_of(int node) const;
  /// The ranks of the node of `rank`, itself among them.
  std::vector<int> mates_of(int rank) const { return ranks_of(node_of(rank)); }

  Topology torus;
  int per_node;

 private:
  /// All ranks, on their nodes; of one shared-memory node each on a node of its own.
  Topology topology_;
};

struct RootedCables {
  int root;
  std::vector<CableId> cables;
};

/// Disjoint trees about as high as the torus is wide: extents / 2, added up, hardly more. As many trees as dimensions.
/// Nothing for meshes and single dimensions, and where a bounded search finds none (tree_search.cpp).
std::optional<std::vector<RootedCables>> low_trees(const Topology& shape);

/// Three heaps of three children to a parent, over at least two ranks, from `root` or from roots of their own
/// (kOwnRoots): the trees of ranks that have no links to share, where every rank reaches every other one alike. Hardly
/// a rank has children in two of them (tree_heaps.cpp).
std::vector<Tree> heap_trees(int ranks, int root);

/// The cables of each tree on a torus or mesh.
std::vector<std::vector<CableId>> disjoint_trees(const Topology& shape, int root);

}  // namespace torii
