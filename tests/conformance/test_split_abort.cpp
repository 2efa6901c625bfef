// SPDX-License-Identifier: Apache-2.0
// A team that is aborted by a member that has left a split of it already: all members have their part, or none has.
#include <gtest/gtest.h>
#include <torii/torii.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <random>
#include <thread>

#include "tests/conformance/thread_team.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr int kRanks = 3;
int turns() { return is_full() ? 300 : 90; }

// What rank 0 is doing. All ranks of the one test read it.
std::atomic<bool> is_splitting;
std::atomic<bool> has_aborted;
thread_local int own_rank = 0;

/// Rank 0 comes late to some of a split's exchanges. Another rank, waiting, at times looks for nothing before the team
/// is aborted: what it finds first is that.
void be_late(void*) {
  thread_local std::minstd_rand random(static_cast<unsigned>(own_rank) + 1);
  if (!is_splitting) return;
  if (own_rank == 0) usleep(static_cast<useconds_t>(random() % 7 * 1'000));
  const bool is_blind = own_rank != 0 && random() % 2 == 0;
  for (int ms = 0; is_blind && ms < 8 && !has_aborted; ++ms) usleep(1'000);
}

torii_status sum_ranks(torii_team* team, std::int64_t& sum) {
  std::int64_t mine = torii_team_rank(team);
  const torii_call call = make_call(TORII_ALLREDUCE, &mine, &sum, 1, TORII_I64);
  return torii_run(team, &call);
}

/// One turn of a rank: a team, a split of it, `end` once the split has ended. All ranks must have ended alike.
void take_turn(torii_team* world, std::array<torii_status, kRanks>& ended,
               const std::function<void(torii_team*)>& begin, const std::function<void(torii_team*)>& end) {
  torii_team* team = nullptr;
  ASSERT_EQ(torii_team_split(world, 0, own_rank, nullptr, &team), TORII_OK) << torii_last_error();
  ASSERT_EQ(torii_barrier(world), TORII_OK);
  begin(team);
  ASSERT_EQ(torii_barrier(world), TORII_OK);
  torii_team* part = nullptr;
  const torii_status status = torii_team_split(team, 0, own_rank, nullptr, &part);
  EXPECT_EQ(status == TORII_OK, part != nullptr);
  EXPECT_TRUE(status == TORII_OK || status == TORII_ABORTED) << torii_last_error();
  ended[static_cast<std::size_t>(own_rank)] = status;
  end(team);
  ASSERT_EQ(torii_barrier(world), TORII_OK);
  for (const torii_status other : ended) EXPECT_EQ(other, ended[0]) << "on rank " << own_rank;
  std::array<torii_status, kRanks> made = {};
  if (ended == made) {
    std::int64_t sum = 0;
    EXPECT_EQ(sum_ranks(part, sum), TORII_OK) << torii_last_error();
    EXPECT_EQ(sum, kRanks * (kRanks - 1) / 2);
  }
  ASSERT_EQ(torii_barrier(world), TORII_OK);
  if (part != nullptr) torii_team_destroy(part);
  torii_team_destroy(team);
}

TEST(SplitAbort, AllHaveTheirPartOrNoneHas) {
  ThreadTeam ranks;
  ranks.ranks = kRanks;
  ranks.settings = "WAIT=yield";
  ranks.idle = be_late;
  std::array<torii_status, kRanks> ended = {};
  int made = 0;
  run_as_threads(ranks, [&](torii_context*, torii_team* world) {
    own_rank = torii_team_rank(world);
    const auto begin = [](torii_team*) {
      if (own_rank != 0) return;
      has_aborted = false;
      is_splitting = true;
    };
    const auto end = [&](torii_team* team) {
      if (own_rank != 0) return;
      EXPECT_EQ(torii_team_abort(team, "a member that needs this team no more"), TORII_OK);
      has_aborted = true;
      is_splitting = false;
      if (ended[0] == TORII_OK) ++made;
    };
    for (int turn = 0; turn < turns() && !::testing::Test::HasFailure(); ++turn) {
      SCOPED_TRACE(turn);
      take_turn(world, ended, begin, end);
    }
  });
  EXPECT_EQ(made, turns());  // rank 0 aborts when it has its part
}

/// A thread beside rank 0 aborts the team at any time during the split.
TEST(SplitAbort, AtAnyTime) {
  ThreadTeam ranks;
  ranks.ranks = kRanks;
  ranks.settings = "WAIT=yield";
  std::array<torii_status, kRanks> ended = {};
  const std::vector<Seed> seeds = seeds_of("conformance_split_abort", static_cast<std::uint64_t>(turns() / 2));
  run_as_threads(ranks, [&](torii_context*, torii_team* world) {
    own_rank = torii_team_rank(world);
    std::uint64_t delay_us = 0;
    std::thread aborting;
    const auto begin = [&](torii_team* team) {
      if (own_rank != 0) return;
      aborting = std::thread([team, delay_us] {
        usleep(static_cast<useconds_t>(delay_us));
        EXPECT_EQ(torii_team_abort(team, "by another thread"), TORII_OK);
      });
    };
    const auto end = [&](torii_team*) {
      if (aborting.joinable()) aborting.join();
    };
    for (const Seed& seed : seeds) {
      if (::testing::Test::HasFailure()) return;
      SCOPED_TRACE(seed);
      delay_us = std::mt19937_64(seed.value)() % 2'000;
      take_turn(world, ended, begin, end);
    }
  });
}

}  // namespace
}  // namespace torii::tests
