// SPDX-License-Identifier: Apache-2.0
// A set of members of a team, as it lies in shared memory and travels between nodes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace torii {

inline constexpr int kTeamRanksMax = 1024;

/// Zeroed memory is the empty set.
struct MemberSet {
  bool operator==(const MemberSet&) const = default;
  std::uint64_t words[kTeamRanksMax / 64];

  bool has(int member) const noexcept { return (words[member / 64] >> (member % 64) & 1) != 0; }
  void add(int member) noexcept { words[member / 64] |= std::uint64_t{1} << (member % 64); }
  void add(const MemberSet& others) noexcept {
    for (std::size_t i = 0; i < std::size(words); ++i) words[i] |= others.words[i];
  }
  void remove(const MemberSet& others) noexcept {
    for (std::size_t i = 0; i < std::size(words); ++i) words[i] &= ~others.words[i];
  }
  int count() const noexcept {
    int count = 0;
    for (const std::uint64_t word : words) count += std::popcount(word);
    return count;
  }
  bool empty() const noexcept { return count() == 0; }
  /// -1: there is none.
  int lowest() const noexcept {
    for (int member = 0; member < kTeamRanksMax; ++member) {
      if (has(member)) return member;
    }
    return -1;
  }
  std::vector<int> list() const {
    std::vector<int> members;
    for (int member = 0; member < kTeamRanksMax; ++member) {
      if (has(member)) members.push_back(member);
    }
    return members;
  }
};

}  // namespace torii
