// SPDX-License-Identifier: Apache-2.0
// Short unequal blocks, which go at once without buffer offers: mixed with long and empty ones in changing calls, and
// lengths that differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/thread_team.hpp"
#include "tests/conformance/unequal_blocks.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

/// The most elements of a block that goes at once.
constexpr std::size_t kShort = 512;

ThreadTeam short_team(int ranks, const std::string& settings = "") {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=1G\nTIMEOUT=5\n" + settings;
  return options;
}

/// Elements from `sender` to `receiver`, equal on all ranks: most often none or few, often the longest that go at once
/// or the shortest that do not, seldom many.
std::size_t short_count(std::uint64_t seed, std::size_t call, int sender, int receiver) {
  std::mt19937_64 random(seed * 1000003 + call * 10007 + static_cast<std::uint64_t>(sender * 101 + receiver));
  const std::uint64_t kind = random() % 16;
  if (kind < 4) return 0;
  if (kind < 10) return 1 + random() % 15;
  if (kind < 12) return kShort;
  if (kind < 14) return kShort + 1;
  return random() % (kind == 14 ? kShort : 20'000);
}

void make_alltoallv(torii_context* context, torii_team* team, std::uint64_t seed, std::size_t call) {
  const int rank = torii_team_rank(team);
  const int ranks = torii_team_ranks(team);
  const bool scattered = (seed + call) % 3 == 0;
  const auto count = [&](int from, int to) { return short_count(seed, call, from, to); };
  const Blocks out(counts_by_peer(ranks, [&](int peer) { return count(rank, peer); }), scattered);
  const Blocks in(counts_by_peer(ranks, [&](int peer) { return count(peer, rank); }), scattered);
  const std::uint64_t place = static_cast<std::uint64_t>(rank) + call;
  Memory input(context, out.reach, place % 5 == 0);
  Memory result(context, in.reach, place % 4 == 0);
  fill_blocks(input.data(), out, rank);
  ASSERT_EQ(torii_alltoallv(team, input.data(), out.counts.data(), out.displacements(scattered), result.data(),
                            in.counts.data(), in.displacements(scattered), TORII_I64),
            TORII_OK)
      << torii_last_error();
  ASSERT_EQ(wrong_elements(result.data(), in, rank), 0) << "call " << call << ", rank " << rank;
}

void make_rooted(torii_team* team, std::uint64_t seed, std::size_t call) {
  const int rank = torii_team_rank(team);
  const int ranks = torii_team_ranks(team);
  const int root = static_cast<int>(call % static_cast<std::size_t>(ranks));
  const Blocks all(counts_by_peer(ranks, [&](int peer) { return short_count(seed, call, root, peer); }), false);
  const std::size_t own = all.counts[static_cast<std::size_t>(rank)];
  std::vector<std::int64_t> vector(all.reach + 1);
  std::vector<std::int64_t> block(own + 1);
  std::vector<std::int64_t> gathered(all.reach + 1);
  fill_blocks(vector.data(), all, root);
  ASSERT_EQ(torii_scatterv(team, vector.data(), all.counts.data(), nullptr, block.data(), own, TORII_I64, root),
            TORII_OK)
      << torii_last_error();
  for (std::size_t i = 0; i < own; ++i) ASSERT_EQ(block[i], element(root, rank, i)) << "call " << call;
  ASSERT_EQ(torii_gatherv(team, block.data(), own, gathered.data(), all.counts.data(), nullptr, TORII_I64, root),
            TORII_OK)
      << torii_last_error();
  EXPECT_TRUE(rank != root || gathered == vector) << "call " << call;
}

void make_all_gatherv(torii_team* team, std::uint64_t seed, std::size_t call) {
  const int rank = torii_team_rank(team);
  const int ranks = torii_team_ranks(team);
  const Blocks all(counts_by_peer(ranks, [&](int peer) { return short_count(seed, call, peer, 0); }), true);
  const auto own = static_cast<std::size_t>(rank);
  std::vector<std::int64_t> result(all.reach + 1);
  std::int64_t* const input = result.data() + all.places[own];
  for (std::size_t i = 0; i < all.counts[own]; ++i) input[i] = element(rank, 0, i);
  ASSERT_EQ(torii_all_gatherv(team, input, all.counts[own], result.data(), all.counts.data(), all.displacements(true),
                              TORII_I64),
            TORII_OK)
      << torii_last_error();
  ASSERT_EQ(wrong_elements(result.data(), all, 0), 0) << "call " << call << ", rank " << rank;
}

/// Calls whose lengths change, one behind the other and between calls of other kinds. With a segment of 512 bytes a
/// short block takes several messages.
TEST(UnequalShort, ChangingBlocksArrive) {
  for (const Seed& seed : seeds_of("conformance_unequal_short/changing", 3)) {
    for (const int ranks : {2, 4}) {
      ThreadTeam options = short_team(ranks, seed.value % 2 == 0 ? "CHANNELS=1" : "CHANNELS=2");
      options.segment_bytes = seed.value % 3 == 0 ? 512 : 8192;
      run_as_threads(options, [&](torii_context* context, torii_team* team) {
        for (std::size_t call = 0; call < 60 && !testing::Test::HasFailure(); ++call) {
          make_alltoallv(context, team, seed.value, call);
          if (call % 3 == 0) make_all_gatherv(team, seed.value, call);
          if (call % 4 == 0) make_rooted(team, seed.value, call);
          if (call % 7 == 0) {
            ASSERT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
          }
        }
      });
      if (testing::Test::HasFailure()) FAIL() << seed << ", " << ranks << " ranks";
    }
  }
}

/// The same lengths in a started call, in a persistent one, in place, and with a deadline of its own.
TEST(UnequalShort, OtherFormsOfTheCallArrive) {
  run_as_threads(short_team(3), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    const Blocks blocks(counts_by_peer(3, [&](int peer) { return static_cast<std::size_t>(rank + peer); }), true);
    std::vector<std::int64_t> data(blocks.reach);
    torii_call call = make_call(TORII_ALLTOALL, data.data(), data.data(), 0, TORII_I64);
    call.unequal = 1;
    call.input_counts = call.result_counts = blocks.counts.data();
    call.input_displacements = call.result_displacements = blocks.places.data();
    torii_request* persistent = nullptr;
    ASSERT_EQ(torii_prepare(team, &call, &persistent), TORII_OK) << torii_last_error();
    for (int round = 0; round < 12; ++round) {
      fill_blocks(data.data(), blocks, rank);
      torii_request* request = persistent;
      call.timeout_seconds = round % 4 == 3 ? 3 : 0;
      if (round % 4 == 0) {
        ASSERT_EQ(torii_restart(persistent), TORII_OK) << torii_last_error();
        ASSERT_EQ(torii_wait(&persistent), TORII_OK) << torii_last_error();
      } else if (round % 4 == 1) {
        ASSERT_EQ(torii_start(team, &call, &request), TORII_OK) << torii_last_error();
        ASSERT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
      } else {
        ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      }
      ASSERT_EQ(wrong_elements(data.data(), blocks, rank), 0) << "round " << round;
    }
    ASSERT_EQ(torii_request_free(&persistent), TORII_OK);
  });
}

/// Elements that rank 0 has for rank 1 and that this one expects.
struct Differing {
  std::size_t sent;
  std::size_t expected;
};

/// Both lengths are named, whichever of the two ranks finds the difference. The other one may have its data by then.
TEST(UnequalShort, LengthsThatDifferAreNamed) {
  constexpr Differing kAll[] = {{3, 4},    {kShort, 1}, {0, 5},    {5, 0},       {7, 6000},
                                {6000, 7}, {0, 6000},   {6000, 0}, {6000, 7000}, {kShort, kShort + 1}};
  for (const std::size_t back : {std::size_t{0}, std::size_t{2}, std::size_t{5000}}) {
    for (const Differing& one : kAll) {
      run_as_threads(short_team(2), [&](torii_context*, torii_team* team) {
        const int rank = torii_team_rank(team);
        const std::vector<std::int64_t> input(20'000, 7);
        std::vector<std::int64_t> result(20'000);
        const auto call = [&](std::size_t from_0, std::size_t from_1) {
          const Counts out = rank == 0 ? Counts{0, from_0} : Counts{from_1, 0};
          const Counts in = rank == 0 ? Counts{0, from_1} : Counts{from_0, 0};
          return torii_alltoallv(team, input.data(), out.data(), nullptr, result.data(), in.data(), nullptr, TORII_I64);
        };
        ASSERT_EQ(call(9, 9), TORII_OK) << torii_last_error();
        ASSERT_EQ(call(9, 9), TORII_OK) << torii_last_error();
        torii_status status = call(rank == 0 ? one.sent : one.expected, back);
        // On the same channel as the call that went wrong.
        if (status == TORII_OK) status = torii_barrier(team);
        if (status == TORII_OK) status = call(1, 1);
        if (status == TORII_OK) status = torii_barrier(team);
        EXPECT_EQ(status, TORII_MISMATCH);
        const std::string text = torii_last_error();
        const std::string sent = std::to_string(one.sent * sizeof(std::int64_t));
        const std::string expected = std::to_string(one.expected * sizeof(std::int64_t));
        EXPECT_NE(text.find("rank 0 on host"), std::string::npos) << text;
        EXPECT_NE(text.find("has " + sent + " bytes for rank 1 on host"), std::string::npos) << text;
        EXPECT_NE(text.find("which has " + expected + ": unequal lengths for a block between them during"),
                  std::string::npos)
            << text;
        for (std::size_t i = std::max<std::size_t>(one.expected, 9); rank == 1 && i < result.size(); ++i) {
          ASSERT_EQ(result[i], 0) << "written beyond the block";
        }
      });
    }
  }
}

/// An alltoallv of bytes between two ranks.
torii_status exchange_bytes(torii_team* team, std::size_t sent, std::size_t expected, const void* input, void* result) {
  const bool is_first = torii_team_rank(team) == 0;
  const Counts out = is_first ? Counts{0, sent} : Counts{sent, 0};
  const Counts in = is_first ? Counts{0, expected} : Counts{expected, 0};
  return torii_alltoallv(team, input, out.data(), nullptr, result, in.data(), nullptr, TORII_U8);
}

/// Signatures of these long blocks look like those of short ones. Ranks wait in turn, so that a message comes while its
/// receiver looks for reasons.
TEST(UnequalShort, NoLongBlockLooksLikeAShortOne) {
  run_as_threads(short_team(2, "CHANNELS=1\nCROSS_MEMORY=off"), [](torii_context*, torii_team* team) {
    for (const std::size_t bytes : {70370, 204073, 337776, 471479, 605182}) {
      const std::vector<std::byte> input(bytes);
      std::vector<std::byte> result(bytes);
      for (int round = 0; round < 6; ++round) {
        if (round % 2 == torii_team_rank(team)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ASSERT_EQ(exchange_bytes(team, bytes, bytes, input.data(), result.data()), TORII_OK) << torii_last_error();
      }
    }
  });
}

/// In these calls the salt looks like that of a call a few calls before. Empty blocks need no message.
TEST(UnequalShort, NoCallLooksLikeAnEarlierOne) {
  run_as_threads(short_team(2, "CHANNELS=1"), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    const std::vector<std::byte> input(8);
    std::vector<std::byte> result(8);
    const std::set<int> alike = {45206, 87810, 91394, 110742};
    for (int call = 1; call <= *alike.rbegin(); ++call) {
      std::size_t bytes = call == 1 || call % 5000 == 0 || alike.contains(call + 1) ? 8 : 0;
      if (alike.contains(call)) {
        if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
        bytes = 8;
      }
      ASSERT_EQ(exchange_bytes(team, bytes, bytes, input.data(), result.data()), TORII_OK) << torii_last_error();
    }
  });
}

/// Rank 1 sends what rank 0 does not expect, until no slot is free any more.
TEST(UnequalShort, BlocksThatAreNeverExpectedAreFound) {
  run_as_threads(short_team(2), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    const std::vector<std::byte> input(8);
    std::vector<std::byte> result(8);
    torii_status status = TORII_OK;
    for (int call = 0; call < 500 && status == TORII_OK; ++call) {
      status = exchange_bytes(team, rank == 1 ? 8 : 0, 0, input.data(), result.data());
    }
    if (status == TORII_OK) status = torii_barrier(team);
    EXPECT_EQ(status, TORII_MISMATCH) << torii_last_error();
  });
}

/// A block that was not expected leaves the numbers of credits behind: the sender of a later one that is read in place
/// must not wait for ever.
TEST(UnequalShort, ABlockThatIsReadAfterOneThatWasNotExpectedWaitsForNobody) {
  run_as_threads(short_team(2, "CHANNELS=1"), [](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    constexpr std::size_t kBytes = 48'000;
    Memory input(context, kBytes / sizeof(std::int64_t), true);
    Memory result(context, kBytes / sizeof(std::int64_t), false);
    torii_status status = exchange_bytes(team, rank == 0 ? 8 : 0, 0, input.data(), result.data());
    if (status == TORII_OK) status = exchange_bytes(team, kBytes, kBytes, input.data(), result.data());
    if (status == TORII_OK) status = torii_barrier(team);
    EXPECT_EQ(status, TORII_MISMATCH) << torii_last_error();
  });
}

/// Ranks come late in turn to calls in which they only send or only take, so that the others look for reasons.
TEST(UnequalShort, LateRanksOfRootedCallsAreAwaited) {
  for (const bool allocated : {false, true}) {
    run_as_threads(short_team(3, "CHANNELS=1\nSLOTS=1"), [&](torii_context* context, torii_team* team) {
      const int rank = torii_team_rank(team);
      constexpr std::size_t kMost = 6000;
      Memory whole(context, 3 * kMost, allocated);
      Memory own(context, kMost, allocated);
      for (const std::size_t count : {kMost, std::size_t{1}}) {
        const Counts counts(3, count);
        for (int call = 0; call < 12; ++call) {
          const auto late = [&] {
            if (call % 3 == rank) std::this_thread::sleep_for(std::chrono::milliseconds(8));
          };
          late();
          ASSERT_EQ(torii_gatherv(team, own.data(), count, whole.data(), counts.data(), nullptr, TORII_I64, 0),
                    TORII_OK)
              << torii_last_error();
          late();
          ASSERT_EQ(torii_scatterv(team, whole.data(), counts.data(), nullptr, own.data(), count, TORII_I64, 0),
                    TORII_OK)
              << torii_last_error();
        }
      }
    });
  }
}

}  // namespace
}  // namespace torii::tests
