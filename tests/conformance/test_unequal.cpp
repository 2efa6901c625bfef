// SPDX-License-Identifier: Apache-2.0
// Blocks of unequal lengths: alltoallv, scatterv, gatherv, empty blocks and one receiver that gets most; and what is
// refused.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"
#include "tests/conformance/unequal_blocks.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr int kUnequalRanks = 5;

ThreadTeam unequal_team(int ranks) {
  ThreadTeam options;
  options.ranks = ranks;
  options.segment_bytes = 1024;
  options.settings = "ARENA=1G\nTIMEOUT=5";
  return options;
}

// Seeds say the kind of a call too. Those of a run are consecutive, so every kind comes in each.

TEST(Unequal, BlocksOfAlltoallArrive) {
  const std::vector<Seed> seeds = seeds_of("conformance_unequal/alltoall", 12);
  run_as_threads(unequal_team(kUnequalRanks), [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    for (const Seed& one : seeds) {
      const std::uint64_t seed = one.value;
      const bool scattered = seed % 2 == 0;
      const Blocks out(counts_by_peer(kUnequalRanks, [&](int peer) { return count_of(seed, rank, peer); }), scattered);
      const Blocks in(counts_by_peer(kUnequalRanks, [&](int peer) { return count_of(seed, peer, rank); }), scattered);
      Memory input(context, out.reach, (static_cast<std::uint64_t>(rank) + seed) % 3 == 0);
      Memory result(context, in.reach, (static_cast<std::uint64_t>(rank) + seed) % 2 == 0);
      fill_blocks(input.data(), out, rank);
      ASSERT_EQ(torii_alltoallv(team, input.data(), out.counts.data(), out.displacements(scattered), result.data(),
                                in.counts.data(), in.displacements(scattered), TORII_I64),
                TORII_OK)
          << torii_last_error();
      ASSERT_EQ(wrong_elements(result.data(), in, rank), 0) << one << ", rank " << rank;
    }
  });
}

TEST(Unequal, BlocksOfScatterAndGatherArrive) {
  const std::vector<Seed> seeds = seeds_of("conformance_unequal/scatter", 10);
  run_as_threads(unequal_team(kUnequalRanks), [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    for (const Seed& one : seeds) {
      const std::uint64_t seed = one.value;
      const int root = static_cast<int>(seed % kUnequalRanks);
      const bool scattered = seed % 3 == 0;
      const bool allocated = (static_cast<std::uint64_t>(rank) + seed) % 2 == 0;
      const Blocks all(counts_by_peer(kUnequalRanks, [&](int peer) { return count_of(seed, root, peer); }), scattered);
      const std::size_t own = count_of(seed, root, rank);
      Memory vector(context, all.reach, allocated);
      Memory block(context, own, allocated);
      fill_blocks(vector.data(), all, root);
      ASSERT_EQ(torii_scatterv(team, rank == root ? vector.data() : nullptr, rank == root ? all.counts.data() : nullptr,
                               all.displacements(scattered), block.data(), own, TORII_I64, root),
                TORII_OK)
          << torii_last_error();
      for (std::size_t i = 0; i < own; ++i) ASSERT_EQ(block.data()[i], element(root, rank, i)) << one;
      // And back: what was scattered is gathered into a fresh vector.
      Memory gathered(context, all.reach, allocated);
      ASSERT_EQ(
          torii_gatherv(team, block.data(), own, rank == root ? gathered.data() : nullptr,
                        rank == root ? all.counts.data() : nullptr, all.displacements(scattered), TORII_I64, root),
          TORII_OK)
          << torii_last_error();
      for (std::size_t peer = 0; rank == root && peer < all.counts.size(); ++peer) {
        for (std::size_t i = 0; i < all.counts[peer]; ++i) {
          ASSERT_EQ(gathered.data()[all.places[peer] + i], element(root, static_cast<int>(peer), i)) << one;
        }
      }
    }
  });
}

TEST(Unequal, BlocksOfAllGatherArrive) {
  const std::vector<Seed> seeds = seeds_of("conformance_unequal/all_gather", 10);
  run_as_threads(unequal_team(kUnequalRanks), [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    for (const Seed& one : seeds) {
      const std::uint64_t seed = one.value;
      const bool scattered = seed % 3 == 0;
      const bool in_place = seed % 2 == 0;
      const Blocks all(counts_by_peer(kUnequalRanks, [&](int peer) { return count_of(seed, peer, 0); }), scattered);
      const auto own = static_cast<std::size_t>(rank);
      Memory result(context, all.reach, (own + seed) % 3 == 0);
      Memory separate(context, all.counts[own], (own + seed) % 4 == 0);
      std::int64_t* input = in_place ? result.data() + all.places[own] : separate.data();
      for (std::size_t i = 0; i < all.counts[own]; ++i) input[i] = element(rank, 0, i);
      ASSERT_EQ(torii_all_gatherv(team, input, all.counts[own], result.data(), all.counts.data(),
                                  all.displacements(scattered), TORII_I64),
                TORII_OK)
          << torii_last_error();
      ASSERT_EQ(wrong_elements(result.data(), all, 0), 0) << one << ", rank " << rank;
    }
  });
}

/// Elements of each rank's block of a reduce_scatter: none, few, many segments.
Counts block_counts(std::uint64_t seed, int ranks) {
  return counts_by_peer(ranks, [&](int peer) { return count_of(seed, peer, 2); });
}

/// Rank r's block is the sum of what all ranks have for it, whatever the algorithm and the form of the call.
TEST(Unequal, BlocksOfReduceScatterArrive) {
  const std::vector<Seed> seeds = seeds_of("conformance_unequal/reduce_scatter", 9);
  for (const char* algorithm : {"node", "ring", "bucket", "auto"}) {
    ThreadTeam options = unequal_team(kUnequalRanks);
    options.algorithm = algorithm;
    run_as_threads(options, [&](torii_context* context, torii_team* team) {
      const int rank = torii_team_rank(team);
      const auto own = static_cast<std::size_t>(rank);
      for (const Seed& one : seeds) {
        const std::uint64_t seed = one.value;
        const Blocks all(block_counts(seed, kUnequalRanks), false);
        const bool in_place = seed % 2 == 0;
        Memory input(context, all.reach, (own + seed) % 3 == 0);
        Memory separate(context, all.counts[own], (own + seed) % 2 == 0);
        std::int64_t* const result = in_place ? input.data() + all.places[own] : separate.data();
        fill_blocks(input.data(), all, rank);
        torii_call call = make_call(TORII_REDUCE_SCATTER, input.data(), result, 0, TORII_I64);
        call.unequal = 1;
        call.input_counts = all.counts.data();
        torii_request* request = nullptr;
        if (seed % 3 == 0) {
          ASSERT_EQ(torii_reduce_scatterv(team, input.data(), result, all.counts.data(), TORII_I64, TORII_SUM),
                    TORII_OK)
              << torii_last_error();
        } else if (seed % 3 == 1) {
          ASSERT_EQ(torii_start(team, &call, &request), TORII_OK) << torii_last_error();
          ASSERT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
        } else {
          Counts counts = all.counts;
          call.input_counts = counts.data();
          ASSERT_EQ(torii_prepare(team, &call, &request), TORII_OK) << torii_last_error();
          counts.assign(kUnequalRanks, 1);  // they have been copied
          ASSERT_EQ(torii_restart(request), TORII_OK) << torii_last_error();
          ASSERT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
          ASSERT_EQ(torii_request_free(&request), TORII_OK);
        }
        for (std::size_t i = 0; i < all.counts[own]; ++i) {
          std::int64_t sum = 0;
          for (int from = 0; from < kUnequalRanks; ++from) sum += element(from, rank, i);
          ASSERT_EQ(result[i], sum) << algorithm << ", " << one << ", rank " << rank << " element " << i;
        }
      }
    });
  }
}

/// Floats, so that the order shows: what torii_expect says of blocks of unequal lengths.
TEST(Unequal, BlocksOfReduceScatterAreTheExpectedOnes) {
  for (const char* algorithm : {"node", "ring", "bucket"}) {
    ThreadTeam options = unequal_team(4);
    options.algorithm = algorithm;
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      const auto rank = static_cast<std::size_t>(torii_team_rank(team));
      const Counts counts = {700, 0, 1, 3000};
      const auto fill = [](int from, std::size_t first, std::size_t count, void* out, void*) {
        for (std::size_t i = 0; i < count; ++i) {
          static_cast<float*>(out)[i] = 1.0F / static_cast<float>(1 + (first + i) * 7 + static_cast<std::size_t>(from));
        }
      };
      std::vector<float> input(3701);
      fill(static_cast<int>(rank), 0, input.size(), input.data(), nullptr);
      std::vector<float> result(counts[rank]);
      torii_call call = make_call(TORII_REDUCE_SCATTER, input.data(), result.data(), 0, TORII_F32);
      call.unequal = 1;
      call.input_counts = counts.data();
      ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      if (counts[rank] == 0) return;
      std::vector<float> expected(counts[rank]);
      ASSERT_EQ(torii_expect(team, &call, 0, counts[rank], fill, nullptr, expected.data()), TORII_OK)
          << torii_last_error();
      EXPECT_EQ(result, expected) << algorithm << " rank " << rank;
    });
  }
}

TEST(Unequal, CountsOfReduceScatterThatDifferAreNoticed) {
  run_as_threads(unequal_team(2), [&](torii_context*, torii_team* team) {
    const Counts counts = torii_team_rank(team) == 0 ? Counts{3, 5} : Counts{4, 4};
    const std::vector<std::int64_t> input(8);
    std::vector<std::int64_t> result(8);
    EXPECT_EQ(torii_reduce_scatterv(team, input.data(), result.data(), counts.data(), TORII_I64, TORII_SUM),
              TORII_MISMATCH);
    EXPECT_EQ(std::string(torii_last_error()),
              "calls differ: rank 0 calls reduce_scatter of unequal blocks x i64, op sum, rank 1 calls reduce_scatter "
              "of unequal blocks x i64, op sum, with other counts");
  });
}

/// Lengths are copied when an operation is prepared, and an alltoall may be in place where both sides have one shape.
TEST(Unequal, BlocksOfPersistentOperationsInPlace) {
  run_as_threads(unequal_team(3), [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    const auto count = [&](int peer) { return static_cast<std::size_t>(2000 * (rank + peer)); };
    const Blocks blocks(counts_by_peer(3, count), false);
    std::vector<std::int64_t> data(blocks.reach);
    Counts counts = blocks.counts;
    torii_call call = make_call(TORII_ALLTOALL, data.data(), data.data(), 0, TORII_I64);
    call.unequal = 1;
    call.input_counts = call.result_counts = counts.data();
    torii_request* request = nullptr;
    ASSERT_EQ(torii_prepare(team, &call, &request), TORII_OK) << torii_last_error();
    counts.assign(3, 1);
    for (int round = 0; round < 3; ++round) {
      fill_blocks(data.data(), blocks, rank);
      ASSERT_EQ(torii_restart(request), TORII_OK) << torii_last_error();
      ASSERT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
      EXPECT_EQ(wrong_elements(data.data(), blocks, rank), 0);
    }
    ASSERT_EQ(torii_request_free(&request), TORII_OK);
  });
}

/// The pair that disagrees is named. A rank that has its data when the others notice learns of it in its next call.
TEST(Unequal, LengthsThatDifferAreNamed) {
  run_as_threads(unequal_team(3), [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    const Counts out(3, 10);
    Counts in(3, 10);
    if (rank == 2) in[0] = 11;
    const std::vector<std::int64_t> input(30);
    std::vector<std::int64_t> result(33);
    torii_status status =
        torii_alltoallv(team, input.data(), out.data(), nullptr, result.data(), in.data(), nullptr, TORII_I64);
    if (rank != 2 && status == TORII_OK) status = torii_barrier(team);
    EXPECT_EQ(status, TORII_MISMATCH);
    const std::string text = torii_last_error();
    EXPECT_NE(text.find("unequal lengths for a block between them during alltoall of unequal blocks"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("rank 0"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 2"), std::string::npos) << text;
  });
}

/// What the arrays can have wrong, each with its sentence; the team goes on afterwards.
TEST(Unequal, BadArraysAreRefused) {
  run_as_threads(unequal_team(2), [&](torii_context*, torii_team* team) {
    const auto rank = static_cast<std::size_t>(torii_team_rank(team));
    std::vector<std::int64_t> data(8);
    Counts counts(2, 1);
    torii_call call = make_call(TORII_ALLTOALL, data.data(), data.data() + 4, 0, TORII_I64);
    call.unequal = 1;
    const auto refused = [&](torii_status status, const std::string& sentence) {
      EXPECT_EQ(torii_run(team, &call), status);
      EXPECT_NE(std::string(torii_last_error()).find(sentence), std::string::npos) << torii_last_error();
    };
    refused(TORII_INVALID_ARGUMENT, "input_counts is NULL, but blocks are unequal");
    call.input_counts = counts.data();
    refused(TORII_INVALID_ARGUMENT, "result_counts is NULL, but blocks are unequal");
    const Counts more(2, 2);
    call.result_counts = more.data();
    refused(TORII_INVALID_ARGUMENT, "rank " + std::to_string(rank) + " has 8 bytes for itself and expects 16");
    const Counts huge = {SIZE_MAX, 1};
    call.result_counts = huge.data();
    refused(TORII_INVALID_ARGUMENT, "result_counts[0] is " + std::to_string(SIZE_MAX) + " at 0, whose bytes overflow");
    call.result_counts = counts.data();
    call.result = nullptr;
    refused(TORII_INVALID_ARGUMENT, "result is NULL, but its blocks are not empty");
    call.result = data.data() + 4;
    call.input = nullptr;
    refused(TORII_INVALID_ARGUMENT, "input is NULL, but its blocks are not empty");
    call.input = data.data();
    EXPECT_EQ(torii_expect(
                  team, &call, 0, 1, [](int, std::size_t, std::size_t, void*, void*) {}, nullptr, data.data()),
              TORII_UNSUPPORTED);
    call.collective = TORII_SCATTER;
    call.root = 2;
    refused(TORII_INVALID_ARGUMENT, "root is 2; it must be from 0 to 1");
    call.root = 0;
    call.count = SIZE_MAX;
    refused(TORII_INVALID_ARGUMENT, "count is " + std::to_string(SIZE_MAX) + ", whose bytes overflow");
    call.collective = TORII_REDUCE_SCATTER;
    call.input_counts = nullptr;
    refused(TORII_INVALID_ARGUMENT, "input_counts is NULL, but blocks are unequal");
    EXPECT_EQ(torii_reduce_scatterv(team, data.data(), data.data(), nullptr, TORII_I64, TORII_SUM),
              TORII_INVALID_ARGUMENT);
    call.input_counts = huge.data();
    refused(TORII_INVALID_ARGUMENT, "input_counts[0] is " + std::to_string(SIZE_MAX) + " after 0 elements");
    call.input_displacements = counts.data();
    refused(TORII_INVALID_ARGUMENT, "input_displacements is not NULL");
    call.input_displacements = nullptr;
    call.input_counts = counts.data();
    call.collective = TORII_ALLREDUCE;
    refused(TORII_INVALID_ARGUMENT, "unequal is 1, but blocks of allreduce are equal");
    EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
  });
}

}  // namespace
}  // namespace torii::tests
