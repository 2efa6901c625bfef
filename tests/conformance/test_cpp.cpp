// SPDX-License-Identifier: Apache-2.0
// The C++ interface in one program with the library's own classes, which have the same names: none takes the other's
// place. (examples/ have it over the library as users link it.)
#include <gtest/gtest.h>
#include <torii/torii.hpp>

#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// Rank r has 1000000 r, 1000000 r + 1, ...
std::vector<std::int64_t> vector_of(int rank, std::size_t count) {
  std::vector<std::int64_t> vector(count);
  std::iota(vector.begin(), vector.end(), std::int64_t{1'000'000} * rank);
  return vector;
}

/// The work of every rank on a team of all of them.
void as_team(int ranks, const std::function<void(Team& team)>& work) {
  ThreadTeam options;
  options.ranks = ranks;
  run_as_threads(options, [&](torii_context*, torii_team* whole) {
    torii_team* all = nullptr;
    ASSERT_EQ(torii_team_split(whole, 0, 0, nullptr, &all), TORII_OK) << torii_last_error();
    Team team(all);
    work(team);
  });
}

TEST(Cpp, AlltoallScatterAndGather) {
  as_team(3, [](Team& team) {
    constexpr std::size_t kBlock = 100;
    const auto rank = static_cast<std::size_t>(team.rank());
    const std::vector<std::int64_t> input = vector_of(team.rank(), 3 * kBlock);
    std::vector<std::int64_t> result(3 * kBlock);
    ASSERT_EQ(team.alltoall(input, std::span(result)), TORII_OK) << torii_last_error();
    for (std::size_t from = 0; from < 3; ++from) {
      EXPECT_EQ(result[from * kBlock], static_cast<std::int64_t>(1'000'000 * from + rank * kBlock));
      EXPECT_EQ(result[from * kBlock + kBlock - 1],
                static_cast<std::int64_t>(1'000'000 * from + rank * kBlock + kBlock - 1));
    }
    // Rank 1 scatters what it has, then gathers it again.
    std::vector<std::int64_t> own(kBlock);
    ASSERT_EQ(team.scatter(input, std::span(own), 1), TORII_OK) << torii_last_error();
    EXPECT_EQ(own[0], static_cast<std::int64_t>(1'000'000 + kBlock * rank));
    std::vector<std::int64_t> gathered(team.rank() == 1 ? 3 * kBlock : 0);
    ASSERT_EQ(team.gather(own, std::span(gathered), 1), TORII_OK) << torii_last_error();
    if (team.rank() == 1) {
      EXPECT_EQ(gathered, input);
    }
  });
}

TEST(Cpp, ScanExscanAndReduceScatter) {
  as_team(3, [](Team& team) {
    const int rank = team.rank();
    const std::vector<std::int64_t> input = {rank + 1, 10 * (rank + 1), 100};
    std::vector<std::int64_t> result(3, -1);
    ASSERT_EQ(team.scan(input, std::span(result)), TORII_OK) << torii_last_error();
    const std::int64_t sum = (rank + 1) * (rank + 2) / 2;
    EXPECT_EQ(result, (std::vector<std::int64_t>{sum, 10 * sum, 100 * (rank + 1)}));
    ASSERT_EQ(team.exscan(input, std::span(result), TORII_MAX), TORII_OK) << torii_last_error();
    if (rank != 0) {
      EXPECT_EQ(result, (std::vector<std::int64_t>{rank, 10 * rank, 100}));
    }
    const std::vector<std::size_t> counts = {1, 0, 2};
    std::vector<std::int64_t> own(counts[static_cast<std::size_t>(rank)]);
    ASSERT_EQ(team.reduce_scatter(input, std::span(own), counts), TORII_OK) << torii_last_error();
    if (rank == 0) {
      EXPECT_EQ(own[0], 6);
    } else if (rank == 2) {
      EXPECT_EQ(own, (std::vector<std::int64_t>{60, 300}));
    }
  });
}

struct Part {
  std::size_t first = 0;
  std::size_t count = 0;
};

Part part_of(std::size_t items, const Team& team) {
  Part part;
  EXPECT_EQ(torii_split(items, team.ranks(), team.rank(), &part.first, &part.count), TORII_OK);
  return part;
}

/// There and back over three dimensions; and an order that keeps the first dimension.
TEST(Cpp, TransposesArraysThereAndBack) {
  as_team(3, [](Team& team) {
    const std::vector<std::size_t> extents = {7, 10, 4};
    const std::vector<std::size_t> turned = {10, 4, 7};
    const Part mine = part_of(7, team);
    const Part wanted = part_of(10, team);
    std::vector<float> input(mine.count * 40);
    std::iota(input.begin(), input.end(), static_cast<float>(mine.first * 40));
    std::vector<float> there(wanted.count * 28);
    const std::vector<int> axes = {1, 2, 0};
    ASSERT_EQ(team.transpose(input, std::span(there), extents, axes), TORII_OK) << torii_last_error();
    for (std::size_t at = 0; at < there.size(); ++at) {
      const std::size_t i = at % 7;
      const std::size_t k = at / 7 % 4;
      const std::size_t j = wanted.first + at / 28;
      ASSERT_EQ(there[at], static_cast<float>((i * 10 + j) * 4 + k));
    }
    std::vector<float> back(input.size());
    const std::vector<int> home = {2, 0, 1};
    ASSERT_EQ(team.transpose(there, std::span(back), turned, home), TORII_OK) << torii_last_error();
    EXPECT_EQ(back, input);
    std::vector<float> local = input;
    const std::vector<int> keeps_first = {0, 2, 1};
    ASSERT_EQ(team.transpose(local, std::span(local), extents, keeps_first), TORII_OK) << torii_last_error();
    for (std::size_t at = 0; at < local.size(); ++at) {
      ASSERT_EQ(local[at], input[at / 40 * 40 + at % 10 * 4 + at / 10 % 4]);
    }
    EXPECT_EQ(team.transpose(input, std::span(there), extents, std::span(axes).first(2)), TORII_INVALID_ARGUMENT);
  });
}

TEST(Cpp, PermutesInPlace) {
  as_team(4, [](Team& team) {
    // Everything is turned round: item i of 40 goes to 39 - i.
    std::vector<double> data(10);
    std::vector<std::uint64_t> destinations(10);
    for (std::size_t i = 0; i < 10; ++i) {
      data[i] = static_cast<double>(static_cast<std::size_t>(team.rank()) * 10 + i);
      destinations[i] = 39 - (static_cast<std::uint64_t>(team.rank()) * 10 + i);
    }
    ASSERT_EQ(team.permute(data, destinations, std::span(data)), TORII_OK) << torii_last_error();
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(data[i], static_cast<double>(39 - (static_cast<std::size_t>(team.rank()) * 10 + i)));
    }
  });
}

/// Inline functions of two classes with one mangled name would be one function in this program.
TEST(Cpp, ClassesInsideHaveOtherNames) {
  EXPECT_NE(std::string_view(typeid(torii::Team).name()), "N5torii4TeamE");
  EXPECT_NE(std::string_view(typeid(torii::Context).name()), "N5torii7ContextE");
  EXPECT_NE(std::string_view(typeid(torii::Request).name()), "N5torii7RequestE");
}

}  // namespace
}  // namespace torii::tests
