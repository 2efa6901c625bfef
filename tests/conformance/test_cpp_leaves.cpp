// SPDX-License-Identifier: Apache-2.0
// Sums over leaves by the C++ interface: spans, functions that write leaves, and what is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <torii/torii.hpp>
#include <vector>

#include "tests/conformance/leaf_data.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kSevenLeaves = 7;
constexpr std::size_t kElements = 30;

/// Runs `body(team)` on three ranks; the team is lent.
template <typename Body>
void on_three_ranks(Body&& body) {
  ThreadTeam options;
  options.ranks = 3;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context*, torii_team* handle) {
    torii_team* part = nullptr;
    ASSERT_EQ(torii_team_split(handle, 0, 0, nullptr, &part), TORII_OK) << torii_last_error();
    Team team(part);
    body(team);
  });
}

std::vector<float> vectors_of(const cpp::Leaves& leaves, std::size_t count) {
  std::vector<float> all(leaves.count() * count);
  for (std::size_t i = 0; i < leaves.count(); ++i) fill_leaf(TORII_F32, leaves.first() + i, 0, count, &all[i * count]);
  return all;
}

void write_leaf(std::size_t leaf, std::span<float> out) { fill_leaf(TORII_F32, leaf, 0, out.size(), out.data()); }

std::vector<float> expected(std::size_t count) {
  const std::vector<std::byte> bytes = sum_of_leaves(TORII_F32, TORII_SUM, kSevenLeaves, count);
  std::vector<float> values(count);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(CppLeaves, HaveTheSumOfTheCInterface) {
  on_three_ranks([](Team& team) {
    cpp::Leaves leaves = team.leaves(kSevenLeaves);
    EXPECT_EQ(leaves.all(), kSevenLeaves);
    const std::vector<float> input = vectors_of(leaves, kElements);
    std::vector<float> result(kElements);
    ASSERT_EQ(leaves.allreduce(input, std::span(result)), TORII_OK) << torii_last_error();
    EXPECT_EQ(result, expected(kElements));
    std::fill(result.begin(), result.end(), 0.0F);
    ASSERT_EQ(leaves.allreduce_written(write_leaf, std::span(result)), TORII_OK);
    EXPECT_EQ(result, expected(kElements));
    std::vector<float> at_root(team.rank() == 1 ? kElements : 0);
    ASSERT_EQ(leaves.reduce(input, std::span(at_root), kElements, 1), TORII_OK) << torii_last_error();
    if (team.rank() == 1) {
      EXPECT_EQ(at_root, expected(kElements));
    }
    std::fill(at_root.begin(), at_root.end(), 0.0F);
    ASSERT_EQ(leaves.reduce_written(write_leaf, std::span(at_root), kElements, 1), TORII_OK) << torii_last_error();
    if (team.rank() == 1) {
      EXPECT_EQ(at_root, expected(kElements));
    }
    std::vector<float> block(kElements / 3);
    ASSERT_EQ(leaves.reduce_scatter(input, std::span(block)), TORII_OK) << torii_last_error();
    const std::vector<float> all = expected(kElements);
    const auto begin = all.begin() + team.rank() * static_cast<std::ptrdiff_t>(block.size());
    const std::vector<float> expected_block(begin, begin + static_cast<std::ptrdiff_t>(block.size()));
    EXPECT_EQ(block, expected_block);
    std::fill(block.begin(), block.end(), 0.0F);
    ASSERT_EQ(leaves.reduce_scatter_written(write_leaf, std::span(block)), TORII_OK) << torii_last_error();
    EXPECT_EQ(block, expected_block);
  });
}

TEST(CppLeaves, AreRefusedWithTheReason) {
  on_three_ranks([](Team& team) {
    EXPECT_THROW((void)team.leaves(kSevenLeaves, 0, 2), Failure);
    cpp::Leaves leaves = team.leaves(kSevenLeaves);
    std::vector<float> input(kElements * leaves.count() + 1);
    std::vector<float> result(kElements);
    EXPECT_EQ(leaves.allreduce(input, std::span(result)), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(torii_last_error()), "the input has " + std::to_string(input.size()) +
                                                   " elements and needs " + std::to_string(input.size() - 1) +
                                                   ", for " + std::to_string(leaves.count()) + " leaves of this rank");
    EXPECT_EQ(leaves.reduce_scatter(input, std::span(result)), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(leaves.reduce(input, std::span(result), kElements, 0), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(leaves.reduce_written(write_leaf, std::span(result).first(kElements - 1), kElements, team.rank()),
              TORII_INVALID_ARGUMENT);
    EXPECT_THROW((void)leaves.allreduce_written<float>(
                     [](std::size_t, std::span<float>) { throw std::runtime_error("no such leaf"); }, result),
                 std::runtime_error);
    input.resize(kElements * leaves.count());
    EXPECT_EQ(leaves.allreduce(input, std::span(result)), TORII_OK) << "the team goes on: " << torii_last_error();
  });
}

}  // namespace
}  // namespace torii::tests
