// SPDX-License-Identifier: Apache-2.0
// Three trees for ranks without links between them: heaps in which every parent has three children.
//
//   tree 0 of 8 ranks, own roots      tree 1 is the same, 8/3 ranks further on, tree 2 twice as far
//
//            0                        A third of a heap's places have children. The three trees begin a third of the
//        /   |   \                    ranks apart, so that a rank hands on in one of them and is a leaf in the other
//       1    2    3                   two: an inner rank takes 3 x n/3 and gives n/3 on the way up, and its two leaves
//     / | \  |                        give 2 x n/3. So each rank sends n and takes n on either way, which is the least
//    4  5 6  7                        there is, and no tree is higher than log3(2P).
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
  // With a common root the other ranks form the heaps, and the root is above all three.
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
