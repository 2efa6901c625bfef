// SPDX-License-Identifier: Apache-2.0
// A team that is aborted by a member that has left a split of it already: all members have their part, or none has.
#include <gtest/gtest.h>
#include <torii/torii.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <random>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

constexpr int kRanks = 2;
constexpr int kTurns = 3000;

// What rank 0 is doing. All ranks of the one test read it.
std::atomic<bool> is_splitting;
std::atomic<bool> has_aborted;
thread_local int own_rank = 0;

/// Rank 0 comes late to some of a split's exchanges. Rank 1, waiting, at times looks for nothing before the team is
/// aborted: what it finds first is that.
void be_late(void*) {
  thread_local std::minstd_rand random;
  if (!is_splitting) return;
  if (own_rank == 0) usleep(static_cast<useconds_t>(random() % 7 * 1'000));
  const bool is_blind = own_rank == 1 && random() % 2 == 0;
  for (int ms = 0; is_blind && ms < 8 && !has_aborted; ++ms) usleep(1'000);
}

torii_status sum_ranks(torii_team* team, std::int64_t& sum) {
  std::int64_t mine = torii_team_rank(team);
  const torii_call call = make_call(TORII_ALLREDUCE, &mine, &sum, 1, TORII_I64);
  return torii_run(team, &call);
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
    for (int turn = 0; turn < kTurns; ++turn) {
      torii_team* team = nullptr;
      ASSERT_EQ(torii_team_split(world, 0, own_rank, nullptr, &team), TORII_OK) << torii_last_error();
      ASSERT_EQ(torii_barrier(world), TORII_OK);
      if (own_rank == 0) {
        has_aborted = false;
        is_splitting = true;
      }
      ASSERT_EQ(torii_barrier(world), TORII_OK);
      torii_team* part = nullptr;
      const torii_status status = torii_team_split(team, 0, own_rank, nullptr, &part);
      EXPECT_EQ(status == TORII_OK, part != nullptr);
      EXPECT_TRUE(status == TORII_OK || status == TORII_ABORTED) << torii_last_error();
      ended[static_cast<std::size_t>(own_rank)] = status;
      if (own_rank == 0) {
        EXPECT_EQ(torii_team_abort(team, "a member that needs this team no more"), TORII_OK);
        has_aborted = true;
        is_splitting = false;
      }
      ASSERT_EQ(torii_barrier(world), TORII_OK);
      for (const torii_status other : ended) EXPECT_EQ(other, ended[0]) << "turn " << turn << " on rank " << own_rank;
      if (own_rank == 0 && ended[0] == TORII_OK) ++made;
      const bool have_all = ended == std::array{TORII_OK, TORII_OK};
      std::int64_t sum = 0;
      if (have_all) {
        EXPECT_EQ(sum_ranks(part, sum), TORII_OK) << torii_last_error();
        EXPECT_EQ(sum, kRanks * (kRanks - 1) / 2);
      }
      ASSERT_EQ(torii_barrier(world), TORII_OK);
      if (part != nullptr) torii_team_destroy(part);
      torii_team_destroy(team);
    }
  });
  EXPECT_EQ(made, kTurns);  // rank 0 aborts when it has its part
}

}  // namespace
}  // namespace torii::tests
