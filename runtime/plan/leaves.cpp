// SPDX-License-Identifier: Apache-2.0
// Intervals of leaves and their subtrees.
#include "runtime/plan/leaves.hpp"

#include <algorithm>

#include "runtime/base/status.hpp"

namespace torii {
namespace {

/// "leaf 3" or "leaves 3 to 5".
std::string leaves_text(std::uint64_t first, std::uint64_t end) {
  if (end - first == 1) return "leaf " + std::to_string(first);
  return "leaves " + std::to_string(first) + " to " + std::to_string(end - 1);
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29);
}

}  // namespace

LeafIntervals::LeafIntervals(const std::vector<std::size_t>& counts) {
  begins_.push_back(0);
  for (const std::size_t count : counts) {
    if (count > kLeavesMax - begins_.back()) {
      invalid("there are more than " + std::to_string(kLeavesMax) + " leaves, which is the most");
    }
    begins_.push_back(begins_.back() + count);
    has_rank_without_ = has_rank_without_ || count == 0;
  }
  if (begins_.back() == 0) invalid("the number of leaves is 0; it must be at least 1");
  for (int rank = 0; rank < ranks(); ++rank) add_subtrees(rank);
  first_subtrees_.push_back(static_cast<int>(subtrees_.size()));
  for (int rank = 0; rank < ranks(); ++rank) operands_max_ = std::max(operands_max_, operands(rank));
  join();
  is_one_subtree_each_ = !has_rank_without_ && subtrees_.size() == counts.size() && is_canonical(0);
  for (const std::size_t begin : begins_) digest_ = mixed(digest_, begin + 1);
}

/// E(0, L) divides at powers of two, so the leaves of its subtrees are first .. first + size - 1 with a power of two as
/// `size`, of which `first` is a multiple, cut off at L.
void LeafIntervals::add_subtrees(int rank) {
  first_subtrees_.push_back(static_cast<int>(subtrees_.size()));
  const std::size_t end = first(rank) + count(rank);
  int operand = 0;
  for (std::size_t at = first(rank); at < end; ++operand) {
    std::size_t size = 1;
    while (at % (2 * size) == 0 && at + size < leaves() && std::min(at + 2 * size, leaves()) <= end) size *= 2;
    const std::size_t behind = std::min(at + size, leaves());
    subtrees_.push_back({.rank = rank, .operand = operand, .first = at, .count = behind - at});
    at = behind;
  }
}

/// The parent's first leaf is that of the subtree without its lowest one bit, as in a binomial tree.
void LeafIntervals::join() {
  for (std::size_t i = 1; i < subtrees_.size(); ++i) {
    const std::size_t wanted = subtrees_[i].first & (subtrees_[i].first - 1);
    const auto parent = std::partition_point(subtrees_.begin(), subtrees_.begin() + static_cast<std::ptrdiff_t>(i),
                                             [=](const LeafSubtree& other) { return other.first < wanted; });
    subtrees_[i].parent = static_cast<int>(parent - subtrees_.begin());
    parent->children.push_back(static_cast<int>(i));
  }
}

std::span<const LeafSubtree> LeafIntervals::subtrees_of(int rank) const noexcept {
  return subtrees().subspan(static_cast<std::size_t>(first_subtree(rank)), static_cast<std::size_t>(operands(rank)));
}

int LeafIntervals::end_of(int root) const noexcept {
  int last = root;
  while (!subtrees_[static_cast<std::size_t>(last)].children.empty()) {
    last = subtrees_[static_cast<std::size_t>(last)].children.back();
  }
  return last + 1;
}

bool LeafIntervals::is_canonical(int root) const noexcept {
  for (int at = root + 1; at < end_of(root); ++at) {
    const int distance = at - root;
    if (subtrees_[static_cast<std::size_t>(at)].parent != root + (distance & (distance - 1))) return false;
  }
  return true;
}

LeafIntervals intervals_of(std::span<const LeafClaim> claims) {
  const std::uint64_t leaves = claims.front().leaves;
  std::vector<std::size_t> counts;
  std::uint64_t next = 0;
  for (std::size_t rank = 0; rank < claims.size(); ++rank) {
    const LeafClaim& claim = claims[rank];
    const std::string who = "rank " + std::to_string(rank);
    if (claim.leaves != leaves) {
      invalid(who + " says that there are " + std::to_string(claim.leaves) + " leaves, rank 0 that there are " +
              std::to_string(leaves) + "; all ranks must give the same number");
    }
    if (leaves == 0 || leaves > LeafIntervals::kLeavesMax) {
      invalid("the number of leaves is " + std::to_string(leaves) + "; it must be from 1 to " +
              std::to_string(LeafIntervals::kLeavesMax));
    }
    counts.push_back(claim.count);
    if (claim.count == 0) continue;
    if (claim.count > leaves || claim.first > leaves - claim.count) {
      invalid(who + " has " + std::to_string(claim.count) + " leaves from leaf " + std::to_string(claim.first) +
              " on, but the last of " + std::to_string(leaves) + " leaves is leaf " + std::to_string(leaves - 1));
    }
    if (claim.first > next) {
      invalid("no rank before " + who + " has " + leaves_text(next, claim.first) +
              "; intervals must follow each other in the order of ranks");
    }
    if (claim.first < next) {
      invalid(who + " has " + leaves_text(claim.first, std::min(next, claim.first + claim.count)) +
              ", which a rank before it has too; intervals must follow each other in the order of ranks");
    }
    next = claim.first + claim.count;
  }
  if (next != leaves) invalid("no rank has " + leaves_text(next, leaves) + "; intervals must cover all leaves");
  return LeafIntervals(counts);
}

}  // namespace torii
