// SPDX-License-Identifier: Apache-2.0
// Three trees for ranks without links between them: heaps in which every parent has three children.
//
//   tree 0 of 8 ranks, own roots      Trees 1 and 2 have the same shape, shifted by 8/3 and 16/3 ranks.
//
//            0                        A third of a heap's nodes have children. The trees are shifted by a third of the
//        /   |   \                    ranks, so that each rank has children in one tree and is a leaf in the other two.
//       1    2    3                   On the way up of a vector of n bytes, a rank receives 3 x n/3 from its children,
//     / | \  |                        sends n/3 to its parent, and sends 2 x n/3 as a leaf. So each rank sends n and
//    4  5 6  7                        receives n in either direction, which is optimal. The height is at most log3(2P).
//
// Source: after P. Sanders, J. Speck, J. L. Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and
// scan, Parallel Computing 35, 2009, section 2, with three trees of three children instead of two of two.
#include <cstdint>
#include <utility>

#include "collectives/trees/trees.hpp"

namespace torii {
namespace {

constexpr int kTrees = 3;
constexpr int kChildren = 3;

}  // namespace

std::vector<Tree> heap_trees(int ranks, int root) {
  // With a common root the other ranks form the three heaps, and the root is the parent of all three.
  const bool is_common = root != kOwnRoots;
  const int members = is_common ? ranks - 1 : ranks;
  const int first = is_common ? root + 1 : 0;
  std::vector<Tree> trees;
  for (int tree = 0; tree < kTrees; ++tree) {
    const auto at = [&](int place) {
      return (first + (place + static_cast<int>(std::int64_t{tree} * members / kTrees)) % members) % ranks;
    };
    std::vector<int> parents(static_cast<std::size_t>(ranks), -1);
    if (is_common) parents[static_cast<std::size_t>(at(0))] = root;
    for (int place = 1; place < members; ++place) {
      parents[static_cast<std::size_t>(at(place))] = at((place - 1) / kChildren);
    }
    trees.emplace_back(std::move(parents));
  }
  return trees;
}

}  // namespace torii
