// SPDX-License-Identifier: Apache-2.0
// The trees of every small torus and mesh span, share no cable and are as many and as high as promised.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "collectives/trees/trees.hpp"
#include "runtime/base/status.hpp"

namespace torii::tests {
namespace {

/// Whether no cable is in two trees.
bool are_disjoint(const TreeTable& table) {
  std::set<CableId> used;
  for (const Tree& tree : table.trees) {
    for (int rank = 0; rank < tree.ranks(); ++rank) {
      if (rank != tree.root() && !used.insert(tree.cable(rank)).second) return false;
    }
  }
  return true;
}

/// Tori, meshes and all mixtures of extents 1..5.
std::vector<Topology> shapes() {
  std::vector<Topology> result;
  for (int z = 1; z <= 5; ++z) {
    for (int y = 1; y <= 5; ++y) {
      for (int x = 1; x <= 5; ++x) {
        for (int wraps = 0; wraps < 8; ++wraps) {
          result.push_back(Topology::torus({x, y, z}, {(wraps & 1) != 0, (wraps & 2) != 0, (wraps & 4) != 0}));
        }
      }
    }
  }
  return result;
}

std::vector<int> some_roots(int ranks) { return {0, ranks / 2, ranks - 1}; }

/// How many trees tree_shapes.cpp promises.
std::size_t trees_promised(const Topology& shape) {
  std::size_t wrapping = 0;
  std::size_t ending = 0;
  bool two_layers = false;
  bool two_cables = false;
  for (int d = 0; d < 3; ++d) {
    const int extent = shape.extents()[static_cast<std::size_t>(d)];
    if (extent == 1) continue;
    ++(shape.wraps(d) ? wrapping : ending);
    two_layers |= extent == 2;
    two_cables |= extent == 2 && shape.wraps(d);
  }
  if (ending == 0) return std::max<std::size_t>(wrapping, 1);
  if (wrapping + ending == 3) return wrapping == 0 && two_layers ? 1 : 2;
  return wrapping + ending == 2 && two_cables ? 2 : 1;
}

/// Checks one tree by its parents alone: every way ends at the root, over cables that are there.
void expect_spanning(const Topology& shape, const Tree& tree) {
  int height = 0;
  for (int rank = 0; rank < shape.ranks(); ++rank) {
    int steps = 0;
    for (int at = rank; tree.parent(at) >= 0 && steps <= shape.ranks(); at = tree.parent(at)) ++steps;
    ASSERT_LT(steps, shape.ranks()) << shape.text() << ": the way up from rank " << rank << " goes round";
    height = std::max(height, steps);
    if (rank == tree.root()) continue;
    const int owner = tree.cable(rank) / 3;
    const int other = shape.neighbour(owner, tree.cable(rank) % 3, 1);
    ASSERT_EQ(std::minmax({owner, other}), std::minmax({rank, tree.parent(rank)})) << shape.text();
  }
  EXPECT_EQ(tree.height(), height) << shape.text();
}

TEST(Trees, SpanWithoutSharingCablesOnEverySmallShape) {
  for (const Topology& shape : shapes()) {
    for (const int root : some_roots(shape.ranks())) {
      const auto table = find_trees(shape, root);
      EXPECT_EQ(table->trees.size(), trees_promised(shape)) << shape.text() << " root " << root;
      EXPECT_TRUE(are_disjoint(*table)) << shape.text() << " root " << root;
      for (const Tree& tree : table->trees) {
        EXPECT_EQ(tree.root(), root);
        expect_spanning(shape, tree);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Trees, FromOwnRootsSpanWithoutSharingCablesOnEverySmallShape) {
  for (const Topology& shape : shapes()) {
    const auto common = find_trees(shape, 0);
    const auto own = find_trees(shape, kOwnRoots);
    EXPECT_EQ(own->trees.size(), trees_promised(shape)) << shape.text();
    EXPECT_TRUE(are_disjoint(*own)) << shape.text();
    int common_height = 0;
    int own_height = 0;
    for (const Tree& tree : common->trees) common_height = std::max(common_height, tree.height());
    for (const Tree& tree : own->trees) {
      expect_spanning(shape, tree);
      own_height = std::max(own_height, tree.height());
    }
    EXPECT_LE(own_height, common_height) << shape.text();
    if (HasFatalFailure()) return;
  }
}

/// No tree is lower than the farthest node is away: half of each extent, added up.
TEST(Trees, FromOwnRootsAreHardlyHigherThanTheTorusIsWide) {
  for (int z = 3; z <= 8; ++z) {
    for (int y = 3; y <= z; ++y) {
      for (int x = 3; x <= y; ++x) {
        const Topology torus = Topology::torus({x, y, z});
        const auto low = low_trees(torus);
        ASSERT_TRUE(low.has_value()) << torus.text();
        for (const Tree& tree : find_trees(torus, kOwnRoots)->trees) {
          EXPECT_LE(tree.height(), x / 2 + y / 2 + z / 2 + 2) << torus.text();
        }
      }
    }
  }
  for (const Coordinates& extents : {Coordinates{24, 18, 16}, Coordinates{48, 6, 32}}) {
    const auto start = std::chrono::steady_clock::now();
    const auto table = find_trees(Topology::torus(extents), kOwnRoots);
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 20);
    for (const Tree& tree : table->trees) EXPECT_LE(tree.height(), 50);
  }
}

TEST(Trees, FromOwnRootsAreTheSameEveryTime) {
  const Topology torus = Topology::torus({7, 5, 6});
  const auto first = low_trees(torus);
  const auto second = low_trees(torus);
  ASSERT_TRUE(first && second);
  for (std::size_t tree = 0; tree < first->size(); ++tree) {
    EXPECT_EQ((*first)[tree].root, (*second)[tree].root);
    EXPECT_EQ((*first)[tree].cables, (*second)[tree].cables);
  }
}

TEST(Trees, WithoutASearchHangFromTheirMiddles) {
  const Topology row = Topology::torus({9, 1, 1}, {false, false, false});
  EXPECT_FALSE(low_trees(row).has_value());
  EXPECT_EQ(find_trees(row, 0)->trees.front().height(), 8);
  EXPECT_EQ(find_trees(row, kOwnRoots)->trees.front().height(), 4);
  EXPECT_EQ(find_trees(row, kOwnRoots)->trees.front().root(), 4);
}

/// Ranks without links: three trees, as low as three children allow, in which hardly a rank hands on twice.
TEST(Trees, OfRanksWithoutLinksAreLowAndShareTheWork) {
  for (int ranks = kHeapRanksLeast; ranks <= 200; ++ranks) {
    int lowest = 0;
    for (int reached = 1, layer = 3; reached < ranks; reached += layer, layer *= 3) ++lowest;
    for (const int root : {kOwnRoots, 0, ranks / 2, ranks - 1}) {
      const auto table = find_trees(Topology::node(ranks), root);
      ASSERT_EQ(table->trees.size(), 3U);
      std::vector<int> times_inner(static_cast<std::size_t>(ranks), 0);
      for (const Tree& tree : table->trees) {
        EXPECT_TRUE(root == kOwnRoots || tree.root() == root) << ranks;
        EXPECT_LE(tree.height(), lowest + (root == kOwnRoots ? 0 : 1)) << ranks;
        for (int rank = 0; rank < ranks; ++rank) {
          int steps = 0;
          for (int at = rank; tree.parent(at) >= 0 && steps <= ranks; at = tree.parent(at)) ++steps;
          ASSERT_LE(steps, tree.height()) << ranks << " ranks: the way up from " << rank << " goes round";
          EXPECT_LE(tree.children(rank).size(), 3U);
          if (rank != root && !tree.children(rank).empty()) ++times_inner[static_cast<std::size_t>(rank)];
        }
      }
      EXPECT_LE(std::ranges::count_if(times_inner, [](int times) { return times > 1; }), 2) << ranks;
      EXPECT_LE(std::ranges::max(times_inner), 2) << ranks;
    }
  }
  EXPECT_EQ(find_trees(Topology::node(1024), kOwnRoots)->trees.front().height(), 6);
}

TEST(Trees, OfParentsThatFormNoneAreRefused) {
  EXPECT_THROW(Tree({-1, -1, 0}), Error);
  EXPECT_THROW(Tree({-1, 2, 1}), Error);
  EXPECT_THROW(Tree({1, 0}), Error);
}

TEST(Trees, AreThreeOfTheKnownHeightOnTori) {
  for (int z = 3; z <= 8; ++z) {
    for (int y = 3; y <= 8; ++y) {
      for (int x = 3; x <= 8; ++x) {
        const Topology torus = Topology::torus({x, y, z});
        const int root = torus.ranks() / 3;
        const auto table = find_trees(torus, root);
        ASSERT_EQ(table->trees.size(), 3U);
        EXPECT_TRUE(are_disjoint(*table)) << torus.text();
        int root_children = 0;
        for (const Tree& tree : table->trees) {
          EXPECT_EQ(tree.height(), x + y + z - 2) << torus.text();
          root_children += static_cast<int>(tree.children(root).size());
        }
        EXPECT_EQ(root_children, 3) << torus.text();
        EXPECT_EQ(table->children_most, 3) << torus.text();
      }
    }
  }
}

TEST(Trees, OfMeshesAreNotMuchHigherThanTheShortestWays) {
  for (int n = 3; n <= 8; ++n) {
    const Topology mesh = Topology::torus({n, n, n}, {false, false, false});
    const auto table = find_trees(mesh, 0);
    ASSERT_EQ(table->trees.size(), 2U);
    for (const Tree& tree : table->trees) EXPECT_LE(tree.height(), 3 * (n - 1) + 4) << mesh.text();
  }
}

TEST(Trees, ChildrenStandByHeightThenRank) {
  const auto table = find_trees(Topology::torus({5, 4, 3}), 7);
  int compared = 0;
  for (const Tree& tree : table->trees) {
    for (int rank = 0; rank < tree.ranks(); ++rank) {
      const auto children = tree.children(rank);
      for (std::size_t i = 0; i < children.size(); ++i) {
        EXPECT_EQ(tree.parent(children[i]), rank);
        if (i == 0) continue;
        ++compared;
        EXPECT_LT(std::pair(tree.height(children[i - 1]), children[i - 1]),
                  std::pair(tree.height(children[i]), children[i]));
      }
    }
  }
  EXPECT_GT(compared, 0);
}

TEST(Trees, OneTreeTwiceIsNotDisjoint) {
  TreeTable table = *find_trees(Topology::torus({3, 3, 3}), 0);
  EXPECT_TRUE(are_disjoint(table));
  table.trees.push_back(table.trees.front());
  EXPECT_FALSE(are_disjoint(table));
}

/// The message of the error that a tree of these cables ends in.
std::string tree_error(const Topology& shape, const std::vector<CableId>& cables) {
  try {
    const Tree tree(shape, 0, cables);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::internal);
    return error.what();
  }
  return "";
}

TEST(Trees, CablesThatFormNoTreeAreRefused) {
  const Topology ring = Topology::torus({4, 1, 1});
  EXPECT_EQ(tree_error(ring, {cable_id(0, 0), cable_id(1, 0), cable_id(2, 0)}), "");
  EXPECT_EQ(tree_error(ring, {cable_id(0, 0), cable_id(1, 0)}), "a tree reaches 3 of 4 ranks");
  EXPECT_EQ(tree_error(ring, {cable_id(0, 0), cable_id(1, 0), cable_id(2, 0), cable_id(3, 0)}),
            "the cables of a tree form a cycle: 4 join 4 ranks");
}

TEST(Trees, OfANodeAreThoseOfANearlyCubicTorus) {
  EXPECT_EQ(nearly_cubic_torus(1).text(), "torus:1x1x1");
  EXPECT_EQ(nearly_cubic_torus(7).text(), "torus:7x1x1");
  EXPECT_EQ(nearly_cubic_torus(8).text(), "torus:2x2x2");
  EXPECT_EQ(nearly_cubic_torus(12).text(), "torus:3x2x2");
  EXPECT_EQ(nearly_cubic_torus(48).text(), "torus:4x4x3");
  EXPECT_EQ(find_trees(Grid(Topology::node(8)).torus, 5)->trees.size(), 3U);
  EXPECT_EQ(find_trees(Grid(Topology::node(6)).torus, 5)->trees.size(), 2U);
  EXPECT_EQ(find_trees(Grid(Topology::node(1)).torus, 0)->trees.size(), 1U);
}

TEST(Trees, AreMadeOnce) {
  const Topology torus = Topology::torus({3, 4, 5});
  const auto first = find_trees(torus, 1);
  EXPECT_EQ(find_trees(torus, 1), first);
  EXPECT_NE(find_trees(torus, 2), first);
  for (int x = 1; x <= 40; ++x) EXPECT_EQ(find_trees(Topology::torus({x, 1, 1}), 0)->trees.front().ranks(), x);
  EXPECT_EQ(find_trees(torus, 1)->trees.front().height(), first->trees.front().height());
}

}  // namespace
}  // namespace torii::tests
