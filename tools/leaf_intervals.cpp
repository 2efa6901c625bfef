// SPDX-License-Identifier: Apache-2.0
// Reads intervals of leaves.
#include "tools/leaf_intervals.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"
#include "runtime/plan/balanced_split.hpp"

namespace torii::tools {
namespace {

constexpr int kRanksDefault = 4;
constexpr std::size_t kRanksMax = 65536;
/// More would be no help to a reader, and the expression of each is built.
constexpr std::size_t kLeavesMax = 65536;

[[noreturn]] void invalid_leaves(const std::string& leaves) {
  invalid(
      fmt::format("--leaves is '{}'; it must be a number from 1 to {}, or a list with the number of each rank's "
                  "leaves, such as 3,0,4",
                  leaves, kLeavesMax));
}

}  // namespace

LeafIntervals read_intervals(const std::string& leaves, const std::optional<int>& ranks) {
  std::vector<std::size_t> counts;
  std::size_t all = 0;
  for (std::string_view rest = leaves;;) {
    const auto count = take_number<std::size_t>(rest);
    if (!count || *count > kLeavesMax || (all += *count) > kLeavesMax || counts.size() == kRanksMax) {
      invalid_leaves(leaves);
    }
    counts.push_back(*count);
    if (rest.empty()) break;
    if (!rest.starts_with(',')) invalid_leaves(leaves);
    rest.remove_prefix(1);
  }
  if (all == 0) invalid_leaves(leaves);
  if (ranks && (*ranks < 1 || static_cast<std::size_t>(*ranks) > kRanksMax)) {
    invalid(fmt::format("--ranks is {}; it must be from 1 to {}", *ranks, kRanksMax));
  }
  const bool is_list = leaves.find(',') != std::string::npos;
  if (is_list && ranks && counts.size() != static_cast<std::size_t>(*ranks)) {
    invalid(fmt::format("--leaves lists {} ranks, but --ranks is {}", counts.size(), *ranks));
  }
  if (is_list) return LeafIntervals(counts);
  counts.clear();
  const int dealt_to = ranks.value_or(kRanksDefault);
  for (int rank = 0; rank < dealt_to; ++rank) counts.push_back(balanced_split(all, dealt_to, rank).count);
  return LeafIntervals(counts);
}

}  // namespace torii::tools
