// SPDX-License-Identifier: Apache-2.0
// Logical leaves: L vectors, of which each rank holds an interval, and the subtrees of E(0, L) that a rank can fold
// alone. Pure arithmetic, equal on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace torii {

/// A largest subtree of E(0, L) (docs/design.md, "Determinism") whose leaves all belong to one rank. The rank folds it
/// alone; the result is one of its operands in a plan.
///
/// The subtrees of all ranks hang together as the ranks of a binomial tree do. The value of a subtree, combined with
/// those of its children in order, is E over all of their leaves.
struct LeafSubtree {
  int rank = 0;
  int operand = 0;        ///< its number among the subtrees of its rank
  std::size_t first = 0;  ///< its leaves are first .. first + count - 1
  std::size_t count = 0;
  int parent = -1;  ///< the subtree with whose value it is combined, always an earlier one; -1: the first
  std::vector<int> children = {};  ///< in the order in which they are combined, which is that of their numbers
};

/// The leaves of all ranks. Rank 0 has the first ones, rank 1 those after them, and so on; a rank may have none.
class LeafIntervals {
 public:
  /// More could not be numbered where torii_operand asks for a leaf.
  static constexpr std::size_t kLeavesMax = 0x7fffffff;

  /// `counts[r]`: leaves of rank r. Throws Error{invalid_argument} if there is no leaf, or more than kLeavesMax.
  explicit LeafIntervals(const std::vector<std::size_t>& counts);

  int ranks() const noexcept { return static_cast<int>(begins_.size()) - 1; }
  std::size_t leaves() const noexcept { return begins_.back(); }
  std::size_t first(int rank) const noexcept { return begins_[static_cast<std::size_t>(rank)]; }
  std::size_t count(int rank) const noexcept { return begins_[static_cast<std::size_t>(rank) + 1] - first(rank); }

  /// The subtrees of all ranks, in the order of their leaves, which is also the order of ranks.
  std::span<const LeafSubtree> subtrees() const noexcept { return subtrees_; }
  std::span<const LeafSubtree> subtrees_of(int rank) const noexcept;
  /// The number of a rank's first subtree.
  int first_subtree(int rank) const noexcept { return first_subtrees_[static_cast<std::size_t>(rank)]; }
  int operands(int rank) const noexcept { return first_subtree(rank + 1) - first_subtree(rank); }
  /// The most operands of any rank.
  int operands_max() const noexcept { return operands_max_; }
  /// One more than the last subtree whose value is combined into that of subtree `root`.
  int end_of(int root) const noexcept;
  /// Whether the values of subtree `root` and those below it are combined as E over them, one by one.
  bool is_canonical(int root) const noexcept;

  bool has_rank_without() const noexcept { return has_rank_without_; }
  /// Each rank has one leaf.
  bool is_one_each() const noexcept { return leaves() == static_cast<std::size_t>(ranks()) && !has_rank_without_; }
  /// Each rank has one subtree, and E over all leaves is E over the ranks' values: any canonical plan serves.
  bool is_one_subtree_each() const noexcept { return is_one_subtree_each_; }
  /// Tells these intervals from others; equal on all ranks and in all processes.
  std::uint64_t digest() const noexcept { return digest_; }

  bool operator==(const LeafIntervals& other) const noexcept { return begins_ == other.begins_; }

 private:
  void add_subtrees(int rank);
  void join();

  std::vector<std::size_t> begins_;  ///< ranks + 1 entries
  std::vector<LeafSubtree> subtrees_;
  std::vector<int> first_subtrees_;  ///< ranks + 1 entries
  int operands_max_ = 0;
  bool has_rank_without_ = false;
  bool is_one_subtree_each_ = false;
  std::uint64_t digest_ = 0;
};

/// What a rank says about its leaves when all ranks agree on intervals.
struct LeafClaim {
  std::uint64_t leaves = 0;  ///< of all ranks
  std::uint64_t first = 0;
  std::uint64_t count = 0;  ///< 0: `first` is not looked at
};
/// The intervals that the ranks claim. Throws Error{invalid_argument} with a text that names the rank and the leaf
/// where claims do not fit together. Equal claims give equal texts, so all ranks report the same.
LeafIntervals intervals_of(std::span<const LeafClaim> claims);

}  // namespace torii
