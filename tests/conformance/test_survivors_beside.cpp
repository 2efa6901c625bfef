// SPDX-License-Identifier: Apache-2.0
// Survivors beside other calls: of other threads, of other teams, of ranks that were left out before.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/conformance/survivor_calls.hpp"

namespace torii::tests {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBytes = std::size_t{1} << 20;

using SurvivorsBeside = Survivors;

/// A rank that was left out learns so in another team, and asks for its survivors when the others do. They need not
/// name it, and one of them may not know of it.
TEST_P(SurvivorsBeside, OfASecondTeamAreWithoutARankThatWasLeftOut) {
  for (const int lost : {0, 3}) {
    ThreadTeam options;
    options.ranks = 4;
    options.settings = "TIMEOUT=3";
    for (int rank = 0; rank < 4 && is_divided(); ++rank) options.nodes.push_back(rank / GetParam().per_node);
    std::barrier meet(4);
    run_as_threads(options, [&](torii_context* context, torii_team* whole) {
      const int rank = torii_team_rank(whole);
      const bool knows = rank != 1;
      torii_team* team = nullptr;
      ASSERT_EQ(torii_team_split(whole, knows ? 0 : 1, 0, nullptr, &team), TORII_OK) << last_error();
      meet.arrive_and_wait();
      if (knows) {
        EXPECT_EQ(torii_team_abort(team, "enough"), TORII_OK);
        meet.arrive_and_wait();
        if (rank != lost) expect_works(survivors_of(team, {lost == 0 ? 0 : 2}), 2);
      } else {
        meet.arrive_and_wait();
      }
      meet.arrive_and_wait();
      // Who has left a rank out does so once: what is allocated from now on that rank does not know.
      void* memory = nullptr;
      EXPECT_EQ(torii_allocate(context, kBytes, &memory), TORII_OK) << last_error();
      EXPECT_NE(torii_barrier(whole), TORII_OK);
      meet.arrive_and_wait();
      const Answer answer = survivors_of(whole);
      if (rank == lost) {
        EXPECT_EQ(answer.status, TORII_PEER_LOST) << answer.text;
      } else {
        expect_works(answer, 3);
        void* again = nullptr;
        EXPECT_EQ(torii_free(context, memory), TORII_OK) << last_error();
        EXPECT_EQ(torii_allocate(context, kBytes, &again), TORII_OK) << last_error();
        EXPECT_TRUE(!knows || is_divided() || again == memory) << "it was set aside";
      }
      meet.arrive_and_wait();
      EXPECT_EQ(torii_team_destroy(team), TORII_OK) << last_error();
    });
  }
}

/// A rank that is left out waits for those that leave it out, whose calls it does not end by its own deadline.
TEST_P(SurvivorsBeside, AreNotLateBecauseALeftOutRankIs) {
  on_failed_team(4, "2", [&](torii_team* team, int rank, std::barrier<>& meet) {
    if (rank != 3) std::this_thread::sleep_for(rank == 2 ? 0ms : rank == 0 ? 1200ms : 2600ms);
    if (rank == 2) {
      // Between nodes its own call ends with its own deadline, which the others do not count.
      const Answer answer = survivors_of(team);
      EXPECT_NE(answer.status, TORII_OK);
      EXPECT_TRUE(is_divided() || answer.status == TORII_PEER_LOST) << answer.text;
    } else if (rank != 3) {
      expect_works(survivors_of(team, {2, 3}), 2);
    }
    meet.arrive_and_wait();
  });
}

/// While one thread asks, the team has a caller: others are refused, or wait where many may call.
TEST_P(SurvivorsBeside, AreAskedForByOneThread) {
  on_failed_team(2, "20", [&](torii_team* team, int rank, std::barrier<>& meet) {
    if (rank == 1) {
      meet.arrive_and_wait();
      return expect_works(survivors_of(team), 2);
    }
    std::thread first([&] { expect_works(survivors_of(team), 2); });
    std::this_thread::sleep_for(50ms);
    for (const torii_status status : {survivors_of(team).status, torii_team_destroy(team), torii_barrier(team)}) {
      EXPECT_EQ(status, TORII_INVALID_ARGUMENT);
      EXPECT_NE(last_error().find("another call of this rank is under way"), std::string::npos) << last_error();
    }
    meet.arrive_and_wait();
    first.join();
  });
}

TEST_P(SurvivorsBeside, AreAskedForByManyThreads) {
  ThreadTeam options;
  options.settings = "TIMEOUT=20";
  for (int rank = 0; rank < 2 && is_divided(); ++rank) options.nodes.push_back(rank / GetParam().per_node);
  run_as_threads(options, [&](torii_context*, torii_team* whole) {
    torii_team_options many = {};
    many.size = sizeof(many);
    many.many_callers = 1;
    torii_team* team = nullptr;
    ASSERT_EQ(torii_team_split(whole, 0, 0, &many, &team), TORII_OK) << last_error();
    EXPECT_EQ(torii_team_abort(team, "enough"), TORII_OK);
    std::atomic<int> made = 0;
    const auto ask = [&] {
      const Answer answer = survivors_of(team);
      if (answer.status == TORII_OK) {
        ++made;
        expect_works(answer, 2);
      } else {
        EXPECT_EQ(answer.status, TORII_INVALID_ARGUMENT) << answer.text;
        EXPECT_NE(answer.text.find("made already"), std::string::npos) << answer.text;
      }
    };
    std::thread other(ask);
    ask();
    other.join();
    EXPECT_EQ(made, 1);
    EXPECT_EQ(torii_team_destroy(team), TORII_OK) << last_error();
  });
}

/// Those for whom a call has waited are the same on all that it has failed on.
TEST_P(SurvivorsBeside, LeaveOutThoseForWhomACallHasWaited) {
  std::barrier meet(4);
  run_as_threads(ranks_here(4, "2"), [&](torii_context*, torii_team* whole) {
    if (torii_team_rank(whole) != 2) {
      EXPECT_EQ(torii_barrier(whole), TORII_TIMEOUT) << last_error();
      const Ranks absent = list_of(torii_team_absent, whole);
      EXPECT_EQ(absent, Ranks{2});
      expect_works(survivors_of(whole, absent), 3);
    }
    meet.arrive_and_wait();
  });
}

INSTANTIATE_TEST_SUITE_P(All, SurvivorsBeside, testing::ValuesIn(places()), place_name);

}  // namespace
}  // namespace torii::tests
