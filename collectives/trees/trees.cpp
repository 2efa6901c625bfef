// SPDX-License-Identifier: Apache-2.0
// Makes tables of trees from sets of cables, and caches them.
#include "collectives/trees/trees.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "runtime/base/index.hpp"
#include "runtime/base/recent.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

constexpr int kNotReached = -2;

/// The rank in the middle of the longest path through a tree.
int middle(const Tree& tree) {
  const auto farthest = [&](int from) {
    std::vector<int> distances(index(tree.ranks()), kNotReached);
    std::vector<int> reached = {from};
    distances[index(from)] = 0;
    const auto reach = [&](int rank, int distance) {
      if (rank < 0 || distances[index(rank)] != kNotReached) return;
      distances[index(rank)] = distance;
      reached.push_back(rank);
    };
    for (std::size_t head = 0; head < reached.size(); ++head) {
      const int rank = reached[head];
      reach(tree.parent(rank), distances[index(rank)] + 1);
      for (const int child : tree.children(rank)) reach(child, distances[index(rank)] + 1);
    }
    return std::pair(reached.back(), distances);
  };
  const int one_end = farthest(tree.root()).first;
  const auto [other_end, from_one] = farthest(one_end);
  const std::vector<int> from_other = farthest(other_end).second;
  const int length = from_one[index(other_end)];
  for (int rank = 0; rank < tree.ranks(); ++rank) {
    if (from_one[index(rank)] == length / 2 && from_other[index(rank)] == length - length / 2) return rank;
  }
  return tree.root();
}

int height_of(const std::vector<Tree>& trees) {
  return std::ranges::max(trees, {}, [](const Tree& tree) { return tree.height(); }).height();
}

std::vector<Tree> trees_from_own_roots(const Topology& shape) {
  std::vector<Tree> trees;
  for (const std::vector<CableId>& cables : disjoint_trees(shape, 0)) {
    trees.emplace_back(shape, middle(Tree(shape, 0, cables)), cables);
  }
  const auto low = low_trees(shape);
  if (!low) return trees;
  std::vector<Tree> lower;
  for (const RootedCables& one : *low) lower.emplace_back(shape, one.root, one.cables);
  return height_of(lower) < height_of(trees) ? lower : trees;
}

std::vector<Tree> trees_from(const Topology& shape, int root) {
  if (shape.kind() == Topology::Kind::node) return heap_trees(shape.ranks(), root);
  if (root == kOwnRoots) return trees_from_own_roots(shape);
  std::vector<Tree> trees;
  for (const std::vector<CableId>& cables : disjoint_trees(shape, root)) trees.emplace_back(shape, root, cables);
  return trees;
}

TreeTable make_table(const Topology& shape, int root) {
  TreeTable table;
  table.trees = trees_from(shape, root);
  const Tree& first = table.trees.front();
  for (int rank = 0; rank < shape.ranks(); ++rank) {
    int children = 0;
    for (const Tree& tree : table.trees) children += static_cast<int>(tree.children(rank).size());
    table.children_most = std::max(table.children_most, children);
    const int neighbours = static_cast<int>(first.children(rank).size()) + (rank == first.root() ? 0 : 1);
    table.first_neighbours_most = std::max(table.first_neighbours_most, neighbours);
  }
  return table;
}

}  // namespace

Tree::Tree(const Topology& shape, int root, std::span<const CableId> cables)
    : parents_(index(shape.ranks()), kNotReached), cables_(parents_.size(), -1), heights_(parents_.size(), 0) {
  std::vector<bool> is_usable(3 * parents_.size(), false);
  for (const CableId cable : cables) is_usable[index(cable)] = true;
  parents_[index(root)] = -1;
  top_down_ = {root};
  reach_all(shape, is_usable);
  expect_all_reached();
  if (cables.size() + 1 != parents_.size()) {
    throw Error(Status::internal, "the cables of a tree form a cycle: " + std::to_string(cables.size()) + " join " +
                                      std::to_string(ranks()) + " ranks");
  }
  measure_heights();
  list_children();
}

Tree::Tree(std::vector<int> parents) : parents_(std::move(parents)), cables_(parents_.size(), -1) {
  heights_.assign(parents_.size(), 0);
  for (int rank = 0; rank < ranks(); ++rank) {
    if (parents_[index(rank)] < 0) top_down_.push_back(rank);
  }
  if (top_down_.size() != 1) {
    throw Error(Status::internal, "a tree has " + std::to_string(top_down_.size()) + " roots instead of one");
  }
  list_children();
  for (std::size_t head = 0; head < top_down_.size(); ++head) {
    for (const int child : children(top_down_[head])) top_down_.push_back(child);
  }
  expect_all_reached();
  measure_heights();
  list_children();  // again, because the heights are known now
}

void Tree::expect_all_reached() const {
  if (top_down_.size() == parents_.size()) return;
  throw Error(Status::internal,
              "a tree reaches " + std::to_string(top_down_.size()) + " of " + std::to_string(ranks()) + " ranks");
}

void Tree::reach_all(const Topology& shape, const std::vector<bool>& is_usable) {
  for (std::size_t head = 0; head < top_down_.size(); ++head) {
    const int rank = top_down_[head];
    for (int dimension = 0; dimension < 3; ++dimension) {
      for (const int direction : {1, -1}) {
        const int to = shape.neighbour(rank, dimension, direction);
        if (to < 0 || parents_[index(to)] != kNotReached) continue;
        const CableId cable = cable_id(direction > 0 ? rank : to, dimension);
        if (!is_usable[index(cable)]) continue;
        parents_[index(to)] = rank;
        cables_[index(to)] = cable;
        top_down_.push_back(to);
      }
    }
  }
}

void Tree::measure_heights() {
  for (auto rank = top_down_.rbegin(); rank + 1 != top_down_.rend(); ++rank) {
    int& above = heights_[index(parent(*rank))];
    above = std::max(above, height(*rank) + 1);
  }
}

void Tree::list_children() {
  first_child_.assign(parents_.size() + 1, 0);
  for (const int parent : parents_) {
    if (parent >= 0) ++first_child_[index(parent) + 1];
  }
  for (std::size_t rank = 0; rank < parents_.size(); ++rank) first_child_[rank + 1] += first_child_[rank];
  children_.resize(parents_.size() - 1);
  std::vector<int> next(first_child_.begin(), first_child_.end() - 1);
  for (int rank = 0; rank < ranks(); ++rank) {
    if (parent(rank) >= 0) children_[index(next[index(parent(rank))]++)] = rank;
  }
  for (std::size_t rank = 0; rank < parents_.size(); ++rank) {
    std::stable_sort(children_.begin() + first_child_[rank], children_.begin() + first_child_[rank + 1],
                     [&](int a, int b) { return height(a) < height(b); });
  }
}

std::span<const int> Tree::children(int rank) const noexcept {
  const std::size_t first = index(first_child_[index(rank)]);
  return std::span(children_).subspan(first, index(first_child_[index(rank) + 1]) - first);
}

std::shared_ptr<const TreeTable> find_trees(const Topology& shape, int root) {
  // The plans of all ranks are made one after the other, for few topologies and roots at a time.
  static Recent<TreeTable, int, Topology> recent(16);
  return recent.get([&] { return make_table(shape, root); }, root, shape);
}

std::shared_ptr<const TreeTable> find_trees(const PlanRequest& request) {
  const Grid grid(request.topology);
  const Topology& asked = request.topology;
  if (asked.kind() == Topology::Kind::node && asked.ranks() >= kHeapRanksLeast) {
    const bool is_common = has_root(request.collective) || request.tuning.common_root;
    return find_trees(asked, is_common ? request.root : kOwnRoots);
  }
  if (has_root(request.collective)) return find_trees(grid.torus, grid.node_of(request.root));
  // A few ranks that share memory have no links to spread over, so their trees need no roots of their own.
  const bool common = request.tuning.common_root || asked.kind() == Topology::Kind::node;
  return find_trees(grid.torus, common ? 0 : kOwnRoots);
}

Grid::Grid(const Topology& topology)
    : torus(topology.kind() == Topology::Kind::torus ? topology.of_nodes() : nearly_cubic_torus(topology.ranks())),
      per_node(topology.ranks() / torus.ranks()),
      topology_(topology.kind() == Topology::Kind::torus ? topology : torus) {}

std::vector<int> Grid::ranks_of(int node) const {
  std::vector<int> ranks(index(per_node));
  for (int place = 0; place < per_node; ++place) ranks[index(place)] = rank_at(node, place);
  return ranks;
}

Topology nearly_cubic_torus(int ranks) {
  Coordinates best = {ranks, 1, 1};
  for (int z = 1; z * z * z <= ranks; ++z) {
    if (ranks % z != 0) continue;
    for (int y = z; y * y <= ranks / z; ++y) {
      if (ranks / z % y != 0) continue;
      const int x = ranks / z / y;
      if (x + y + z < best[0] + best[1] + best[2]) best = {x, y, z};
    }
  }
  return Topology::torus(best);
}

}  // namespace torii
