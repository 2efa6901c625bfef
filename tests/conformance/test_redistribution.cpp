// SPDX-License-Identifier: Apache-2.0
// Transposes and permutations over the public interface: right item by item, in place, and what is refused.
#include <gtest/gtest.h>
#include <torii/torii.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

ThreadTeam team_of(int ranks) {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=1G\nTIMEOUT=5";
  return options;
}

struct Part {
  std::size_t first = 0;
  std::size_t count = 0;
};

Part part_of(std::size_t items, torii_team* team) {
  Part part;
  EXPECT_EQ(torii_split(items, torii_team_ranks(team), torii_team_rank(team), &part.first, &part.count), TORII_OK);
  return part;
}

/// Element (i, j) of every matrix here.
std::int64_t matrix_element(std::size_t i, std::size_t j) { return static_cast<std::int64_t>(i * 1'000'003 + j); }

void expect_transposed(torii_team* team, std::size_t rows, std::size_t columns, bool in_place) {
  const Part mine = part_of(rows, team);
  const Part wanted = part_of(columns, team);
  std::vector<std::int64_t> input(std::max(mine.count * columns, wanted.count * rows) + 1, -1);
  std::vector<std::int64_t> separate(wanted.count * rows + 1, -1);
  for (std::size_t i = 0; i < mine.count; ++i) {
    for (std::size_t j = 0; j < columns; ++j) input[i * columns + j] = matrix_element(mine.first + i, j);
  }
  std::vector<std::int64_t>& result = in_place ? input : separate;
  ASSERT_EQ(torii_transpose(team, input.data(), result.data(), rows, columns, sizeof(std::int64_t)), TORII_OK)
      << torii_last_error();
  for (std::size_t j = 0; j < wanted.count; ++j) {
    for (std::size_t i = 0; i < rows; ++i) {
      ASSERT_EQ(result[j * rows + i], matrix_element(i, wanted.first + j))
          << rows << " x " << columns << " at " << j << ", " << i;
    }
  }
  EXPECT_EQ(separate.back(), -1) << "nothing is written behind the result";
}

TEST(Redistribution, TransposesMatricesOfAnyShape) {
  for (const int ranks : {1, 3, 4}) {
    run_as_threads(team_of(ranks), [&](torii_context*, torii_team* team) {
      for (const auto& [rows, columns] :
           {std::pair{1, 1}, std::pair{4, 4}, std::pair{12, 24}, std::pair{130, 67}, std::pair{2, 300},
            std::pair{300, 2}, std::pair{0, 5}, std::pair{5, 0}, std::pair{600, 400}, std::pair{240, 240}}) {
        for (const bool in_place : {false, true}) {
          expect_transposed(team, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns), in_place);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    });
  }
}

/// Items of `bytes` bytes dealt unevenly, each known by its number.
void expect_permuted(torii_team* team, std::size_t items, std::size_t bytes, std::mt19937_64& random) {
  const auto ranks = static_cast<std::size_t>(torii_team_ranks(team));
  const auto rank = static_cast<std::size_t>(torii_team_rank(team));
  std::vector<std::uint64_t> destinations(items);
  std::iota(destinations.begin(), destinations.end(), std::uint64_t{0});
  std::shuffle(destinations.begin(), destinations.end(), random);
  // Rank 0 gives most and takes least.
  const auto start = [&](std::size_t of, bool of_result) {
    if (of == 0 || of == ranks) return of == 0 ? std::size_t{0} : items;
    return of_result ? items * of / ranks / 2 : items - (ranks - of) * (items / ranks / 2);
  };
  const std::size_t first = start(rank, false);
  const std::size_t count = start(rank + 1, false) - first;
  const std::size_t result_first = start(rank, true);
  const std::size_t result_count = start(rank + 1, true) - result_first;
  const auto byte_of = [&](std::size_t item, std::size_t at) {
    return static_cast<unsigned char>((item * 131 + at * 17) >> (at % 3));
  };
  std::vector<unsigned char> input(count * bytes);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = byte_of(first + i / bytes, i % bytes);
  std::vector<unsigned char> result(result_count * bytes + 1, 0xee);
  ASSERT_EQ(torii_permute(team, input.data(), count, destinations.data() + first, result.data(), result_count, bytes),
            TORII_OK)
      << torii_last_error();
  std::vector<std::size_t> from(items);
  for (std::size_t item = 0; item < items; ++item) from[destinations[item]] = item;
  for (std::size_t i = 0; i + 1 < result.size(); ++i) {
    ASSERT_EQ(result[i], byte_of(from[result_first + i / bytes], i % bytes)) << "byte " << i;
  }
  EXPECT_EQ(result.back(), 0xee);
}

/// Three consecutive seeds have different numbers of ranks.
TEST(Redistribution, PermutesItemsOfAnySize) {
  for (const Seed& seed : seeds_of("conformance_unequal/permutations", 3)) {
    const int ranks = seed.value % 3 == 0 ? 1 : seed.value % 3 == 1 ? 2 : 5;
    run_as_threads(team_of(ranks), [&](torii_context*, torii_team* team) {
      SCOPED_TRACE(seed);
      std::mt19937_64 random(seed.value);
      for (const std::size_t items : {0UL, 1UL, 7UL, 1000UL}) {
        for (const std::size_t bytes : {1UL, 8UL, 12UL, 100UL}) {
          expect_permuted(team, items, bytes, random);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    });
  }
}

void expect_refused(torii_status status, const std::string& sentence) {
  EXPECT_EQ(status, TORII_INVALID_ARGUMENT);
  EXPECT_NE(std::string(torii_last_error()).find(sentence), std::string::npos) << torii_last_error();
}

TEST(Redistribution, BadShapesAreRefusedAndTheTeamGoesOn) {
  run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
    std::vector<double> data(64);
    double* at = data.data();
    const std::size_t extents[] = {4, 4, 2};
    const int twice[] = {1, 1, 0};
    expect_refused(torii_transpose(team, at, at, 4, 4, 0), "element_bytes is 0; it must be from 1 to 16");
    expect_refused(torii_transpose(team, at, at, 4, 4, 24), "element_bytes is 24; it must be from 1 to 16");
    expect_refused(torii_transpose(team, nullptr, at, 4, 4, 8), "input is NULL, but rank ");
    expect_refused(torii_transpose(team, at, nullptr, 4, 4, 8), "result is NULL, but rank ");
    expect_refused(torii_transpose(team, at, at, SIZE_MAX, 2, 8), "extents[0] is " + std::to_string(SIZE_MAX));
    expect_refused(torii_transpose(nullptr, at, at, 4, 4, 8), "team, extents or axes is NULL");
    expect_refused(torii_transpose_array(team, at, at, extents, twice, 3, 8), "axes[1] is 1; axes must hold each");
    expect_refused(torii_transpose_array(team, at, at, extents, twice, 9, 8),
                   "dimensions is 9; it must be from 1 to 8");
    expect_refused(torii_transpose_array(team, at, at, nullptr, twice, 3, 8), "team, extents or axes is NULL");
    std::size_t place = 0;
    expect_refused(torii_split(5, 2, 2, &place, &place), "rank is 2 of 2; ranks must be at least 1");
    expect_refused(torii_split(5, 2, 1, nullptr, &place), "the place for first or count is NULL");
    EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
  });
}

/// Both ranks get the same kind of error whoever has the bad value, and can go on.
TEST(Redistribution, BadPermutationsAreRefusedOnAllRanks) {
  run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    std::vector<double> data(4);
    const auto permute = [&](std::vector<std::uint64_t> to, std::size_t result_count, std::size_t bytes) {
      std::vector<double> result(8);
      return torii_permute(team, data.data(), to.size(), to.data(), result.data(), result_count, bytes);
    };
    const auto of = [&](std::vector<std::uint64_t> first, std::vector<std::uint64_t> second) {
      return rank == 0 ? std::move(first) : std::move(second);
    };
    expect_refused(permute(of({0, 1}, {2, 4}), 2, 8), rank == 1 ? "destinations[1] of rank 1 is 4; it must be below 4"
                                                                : "destinations of rank 1 has a position beyond 3");
    expect_refused(permute(of({0, 3}, {2, 3}), 2, 8), "position 1 of the result got several items or none");
    expect_refused(permute(of({0, 1}, {2, 2}), 2, 8), "position 2 of the result got several items or none");
    expect_refused(permute(of({0, 1}, {2, 3}), 3, 8), "have 4 items and room for 6; the sums");
    expect_refused(permute(of({0, 1}, {2, 3}), 2, rank == 0 ? 8 : 4), "item_bytes of rank 1 is 4, of rank 0 8;");
    expect_refused(permute(of({0, 1}, {2, 3}), 2, 0), "item_bytes of rank 0 is 0");
    expect_refused(permute(of({0, 1}, {2, 3}), SIZE_MAX, 8), "whose bytes overflow");
    expect_refused(torii_permute(nullptr, nullptr, 0, nullptr, nullptr, 0, 1), "team is NULL");
    expect_refused(torii_permute(team, data.data(), 2, nullptr, data.data(), 2, 8),
                   "input or destinations is NULL, but count is 2");
    const std::uint64_t to[] = {0, 1};
    expect_refused(torii_permute(team, data.data(), 2, to, nullptr, 2, 8), "result is NULL, but result_count is 2");
    // One rank alone: the other one learns of it instead of waiting.
    expect_refused(torii_permute(team, data.data(), 2, to, rank == 1 ? nullptr : data.data(), 2, 8),
                   rank == 1 ? "result is NULL, but result_count is 2"
                             : "input, destinations or result of rank 1 is NULL, but its count is 2");
    EXPECT_EQ(permute(of({3, 2}, {1, 0}), 2, 8), TORII_OK) << torii_last_error();
  });
}

/// Shapes with equal parts everywhere, so that no length gives the difference away.
TEST(Redistribution, ShapesThatDifferAreNoticed) {
  run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
    std::vector<double> data(256);
    const std::size_t extents[] = {4, 4, 4};
    const int here[] = {1, 0, 2};
    const int there[] = {1, 2, 0};
    EXPECT_EQ(
        torii_transpose_array(team, data.data(), data.data(), extents, torii_team_rank(team) == 0 ? here : there, 3, 8),
        TORII_MISMATCH);
    EXPECT_NE(std::string(torii_last_error()).find("calls differ"), std::string::npos) << torii_last_error();
  });
}

/// Takes all that can be allocated in the arena.
std::vector<void*> all_memory(torii_context* context) {
  std::vector<void*> pieces;
  for (std::size_t bytes = std::size_t{8} << 20; bytes >= 64; bytes /= 8) {
    void* piece = nullptr;
    while (torii_allocate(context, bytes, &piece) == TORII_OK) pieces.push_back(piece);
  }
  return pieces;
}

TEST(Redistribution, ARankWithoutMemoryFailsTheTeamWithOneCause) {
  ThreadTeam options = team_of(2);
  options.settings = "ARENA=256M\nTIMEOUT=5";
  std::string texts[2];
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    std::vector<void*> pieces;
    if (rank == 1) pieces = all_memory(context);
    std::vector<std::int64_t> data(64 * 64);
    EXPECT_EQ(torii_transpose(team, data.data(), data.data(), 64, 64, 8), TORII_NO_RESOURCE) << torii_last_error();
    texts[rank] = torii_last_error();
    EXPECT_EQ(torii_barrier(team), TORII_POISONED);
    for (void* const piece : pieces) EXPECT_EQ(torii_free(context, piece), TORII_OK);
    torii_team* survivors = nullptr;
    ASSERT_EQ(torii_team_survivors(team, nullptr, &survivors), TORII_OK) << torii_last_error();
    expect_transposed(survivors, 64, 64, true);
    EXPECT_EQ(torii_team_destroy(survivors), TORII_OK);
  });
  EXPECT_TRUE(texts[0].starts_with("rank 1 has no ")) << texts[0];
  EXPECT_EQ(texts[0], texts[1]);
}

/// Blocks that travel together have one length, which a forced floyd says.
TEST(Redistribution, FloydRefusesUnequalBlocksWithAReason) {
  ThreadTeam options = team_of(2);
  options.algorithm = "floyd";
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    std::vector<std::int64_t> data(8);
    const std::size_t counts[] = {1, 1};
    EXPECT_EQ(torii_alltoallv(team, data.data(), counts, nullptr, data.data() + 4, counts, nullptr, TORII_I64),
              TORII_UNSUPPORTED);
    EXPECT_NE(std::string(torii_last_error()).find("floyd has no plan for blocks of unequal lengths; use direct"),
              std::string::npos)
        << torii_last_error();
    // What the library makes of alltoalls does not depend on the team's algorithm.
    expect_transposed(team, 7, 5, false);
  });
}

}  // namespace
}  // namespace torii::tests
