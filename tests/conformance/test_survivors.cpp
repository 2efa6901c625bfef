// SPDX-License-Identifier: Apache-2.0
// Survivors that are asked for again: ranks that come late, hang, refuse or give different lists. All that come have
// the team or the same reason, on one node and between nodes. tests/processes lets ranks die and stops them.
// A rank that does not move for half the timeout is late, too. Where many tests share a CPU a rank may not run for some
// tenths of a second, so timeouts of tests that name who was late are 2 s.
#include <chrono>
#include <thread>

#include "tests/conformance/survivor_calls.hpp"

namespace torii::tests {
namespace {

using namespace std::chrono_literals;

TEST_P(Survivors, AreAskedForAgainWhenALateRankHasCome) {
  on_failed_team(3, "2", [&](torii_team* team, int rank, std::barrier<>& meet) {
    if (rank != 1) {
      const Answer first = survivors_of(team);
      EXPECT_EQ(first.status, TORII_TIMEOUT) << first.text;
      EXPECT_NE(first.text.find("; not come to the call: rank 1 on host "), std::string::npos) << first.text;
      EXPECT_EQ(first.text.find("died"), std::string::npos) << "nobody has: " << first.text;
      note(1, first);
      EXPECT_EQ(list_of(torii_team_absent, team), Ranks{1});
    }
    meet.arrive_and_wait();
    expect_works(survivors_of(team), 3);
    Answer again = survivors_of(team);
    EXPECT_EQ(again.status, TORII_INVALID_ARGUMENT) << "it has been made";
  });
}

TEST_P(Survivors, LeaveOutARankThatHangs) {
  on_failed_team(4, "2", [&](torii_team* team, int rank, std::barrier<>& meet) {
    if (rank != 2) {
      EXPECT_EQ(survivors_of(team).status, TORII_TIMEOUT);
      const Ranks absent = list_of(torii_team_absent, team);
      ASSERT_EQ(absent, Ranks{2});
      expect_works(survivors_of(team, absent), 3);
      EXPECT_EQ(list_of(torii_team_lost, team), Ranks{2});
    }
    meet.arrive_and_wait();
    for (int call = 0; call < 2 && rank == 2; ++call) {
      const Answer late = survivors_of(team);
      EXPECT_EQ(late.status, TORII_PEER_LOST) << late.text;
      EXPECT_NE(late.text.find("left out this rank"), std::string::npos) << late.text;
    }
    meet.arrive_and_wait();
  });
}

/// Each list is compared with the others', like an option; then the same call with one list succeeds.
TEST_P(Survivors, WithDifferentListsAreToldSo) {
  on_failed_team(4, "3", [&](torii_team* team, int rank, std::barrier<>& meet) {
    const Ranks lists[] = {{3}, {3, 3}, {}, {}};  // that of rank 2 lacks rank 3
    if (rank != 3) {
      const Answer first = survivors_of(team, lists[rank]);
      EXPECT_EQ(first.status, TORII_MISMATCH) << first.text;
      EXPECT_NE(first.text.find("differ between rank 0 and rank 2"), std::string::npos) << first.text;
      note(1, first);
      expect_works(survivors_of(team, {3}), 3);
    }
    meet.arrive_and_wait();
  });
}

/// A rank that the others leave out, and that leaves them out: one team is made. Between nodes it is that of the many.
TEST_P(Survivors, WhoLeaveEachOtherOutAreOneTeam) {
  std::vector<torii_status> statuses(3);
  on_failed_team(3, "2", [&](torii_team* team, int rank, std::barrier<>&) {
    const Answer answer = survivors_of(team, rank == 2 ? Ranks{0, 1} : Ranks{2});
    statuses[static_cast<std::size_t>(rank)] = answer.status;
    if (answer.status == TORII_OK) expect_works(answer, rank == 2 ? 1 : 2);
  });
  EXPECT_EQ(statuses[0], statuses[1]);
  EXPECT_NE(statuses[0] == TORII_OK, statuses[2] == TORII_OK);
  for (const torii_status status : statuses) {
    EXPECT_TRUE(status == TORII_OK || status == TORII_PEER_LOST || status == TORII_INVALID_ARGUMENT) << status;
  }
  if (is_divided()) {
    EXPECT_EQ(statuses[0], TORII_OK);
  }
}

/// Each rank leaves the next one out.
TEST_P(Survivors, WhoLeaveEachOtherOutInACircleAreToldSo) {
  on_failed_team(3, "20", [&](torii_team* team, int rank, std::barrier<>&) {
    const Answer answer = survivors_of(team, {(rank + 1) % 3});
    EXPECT_EQ(answer.status, TORII_MISMATCH) << answer.text;
    note(1, answer);
  });
}

/// A call that makes no sense fails the others' with its reason, and all may call again.
TEST_P(Survivors, AreToldOfARefusedCall) {
  on_failed_team(3, "5", [&](torii_team* team, int rank, std::barrier<>&) {
    const std::string bad = "rank 1: ";
    const auto expect_told = [&](int attempt, const Answer& answer, const std::string& part) {
      EXPECT_EQ(answer.status, TORII_INVALID_ARGUMENT) << answer.text;
      EXPECT_NE(answer.text.find(bad + part), std::string::npos) << answer.text;
      note(attempt, answer);
    };
    Answer answer;
    if (rank == 1) {
      answer.status = torii_team_survivors(team, nullptr, nullptr);
      answer.text = last_error();
    } else {
      answer = survivors_of(team);
    }
    expect_told(1, answer, "the place for the team is NULL");
    expect_told(2, rank == 1 ? survivors_of(team, {0, 3}) : survivors_of(team),
                "without names rank 3; the ranks of the team are from 0 to 2");
    expect_told(3, rank == 1 ? survivors_of(team, {1}) : survivors_of(team),
                "without names rank 1, which makes the call");
    expect_works(survivors_of(team), 3);
  });
}

/// Between nodes each attempt has letters of its own, of which there are four; on one node there is no limit.
TEST_P(Survivors, AreAskedForManyTimes) {
  on_failed_team(2, "5", [&](torii_team* team, int rank, std::barrier<>&) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      EXPECT_EQ(survivors_of(team, rank == 0 ? Ranks{} : Ranks{7}).status, TORII_INVALID_ARGUMENT);
    }
    const bool is_last = is_divided() && GetParam().per_node < 2;
    for (int attempt = 0; attempt < 20 && !is_last; ++attempt) {
      EXPECT_EQ(survivors_of(team, rank == 1 ? Ranks{} : Ranks{-1}).status, TORII_INVALID_ARGUMENT);
    }
    if (!is_last) return expect_works(survivors_of(team), 2);
    const Answer fifth = survivors_of(team);
    EXPECT_EQ(fifth.status, TORII_NO_RESOURCE) << fifth.text;
    EXPECT_NE(fifth.text.find("4 times"), std::string::npos) << fifth.text;
  });
}

/// Nobody has made a call that failed: the alarm of another rank comes while this one asks.
TEST_P(Survivors, AreAskedForBeforeACallHasFailed) {
  std::barrier meet(3);
  run_as_threads(ranks_here(3, "4"), [&](torii_context*, torii_team* whole) {
    torii_team* const team = aborted_team(whole, meet);
    ASSERT_NE(team, nullptr);
    expect_works(survivors_of(team), 3);
    EXPECT_EQ(torii_team_destroy(team), TORII_OK) << last_error();
  });
}

/// The others could make a team too: half of the ranks need the lowest, fewer need the option.
TEST_P(Survivors, BetweenNodesAreTheMany) {
  if (!is_divided()) GTEST_SKIP() << "on one node all see one word";
  on_failed_team(4, "3", [&](torii_team* team, int rank, std::barrier<>& meet) {
    if (rank >= 2) {
      const Answer half = survivors_of(team, {0, 1});
      EXPECT_EQ(half.status, TORII_INVALID_ARGUMENT) << half.text;
      EXPECT_NE(half.text.find("would be 2 of 4 ranks"), std::string::npos) << half.text;
      expect_works(survivors_of(team, {0, 1}, true), 2);
    }
    meet.arrive_and_wait();
  });
  on_failed_team(4, "3", [&](torii_team* team, int rank, std::barrier<>& meet) {
    if (rank < 2) expect_works(survivors_of(team, {2, 3}), 2);
    meet.arrive_and_wait();
    if (rank == 3) {
      const Answer alone = survivors_of(team, {0, 1, 2});
      // It may have heard of the others' team.
      EXPECT_TRUE(alone.status == TORII_INVALID_ARGUMENT || alone.status == TORII_PEER_LOST) << alone.text;
    }
    meet.arrive_and_wait();
  });
}

/// A rank that is left out is lost in all teams of the context: they fail, and it learns so there.
TEST_P(Survivors, LeaveARankOutOfAllTeams) {
  std::barrier meet(3);
  run_as_threads(ranks_here(3, "3"), [&](torii_context* context, torii_team* whole) {
    const int rank = torii_team_rank(whole);
    torii_team* team = nullptr;
    torii_team* pair = nullptr;
    torii_team* alone = nullptr;
    ASSERT_EQ(torii_team_split(whole, 0, 0, nullptr, &team), TORII_OK) << last_error();
    ASSERT_EQ(torii_team_split(whole, rank == 0 ? 1 : 0, 0, nullptr, &pair), TORII_OK) << last_error();
    ASSERT_EQ(torii_team_split(whole, rank, 0, nullptr, &alone), TORII_OK) << last_error();
    meet.arrive_and_wait();
    if (rank == 0) {
      EXPECT_EQ(torii_team_abort(team, "enough"), TORII_OK);
    }
    meet.arrive_and_wait();
    EXPECT_EQ(torii_barrier(team), TORII_ABORTED) << last_error();
    if (rank != 2) {
      expect_works(survivors_of(team, {2}), 2);
      EXPECT_EQ(list_of(torii_team_lost, whole), Ranks{2});
      EXPECT_EQ(torii_barrier(whole), TORII_PEER_LOST) << last_error();
      EXPECT_NE(last_error().find("rank 2 on host "), std::string::npos) << last_error();
      EXPECT_NE(last_error().find("left out"), std::string::npos) << last_error();
      torii_team* more = nullptr;
      EXPECT_EQ(torii_team_create(context, nullptr, &more), TORII_PEER_LOST) << last_error();
      if (rank == 0) {
        EXPECT_EQ(torii_barrier(pair), TORII_OK) << "a team without that rank: " << last_error();
      } else {
        EXPECT_EQ(torii_barrier(pair), TORII_PEER_LOST) << last_error();
      }
      expect_works(survivors_of(whole), 2);
    }
    meet.arrive_and_wait();
    if (rank == 2) {
      for (torii_team* const known : {whole, pair}) {
        EXPECT_EQ(torii_barrier(known), TORII_PEER_LOST) << last_error();
        EXPECT_NE(last_error().find("rank "), std::string::npos) << last_error();
      }
      EXPECT_EQ(survivors_of(whole).status, TORII_PEER_LOST);
    }
    EXPECT_EQ(torii_barrier(alone), TORII_OK) << last_error();
    meet.arrive_and_wait();
    for (torii_team* const one : {team, pair, alone}) EXPECT_EQ(torii_team_destroy(one), TORII_OK) << last_error();
  });
}

TEST_P(Survivors, AloneLeaveNobodyOrAreOneRank) {
  on_failed_team(2, "2", [&](torii_team* team, int rank, std::barrier<>& meet) {
    if (rank == 0) expect_works(survivors_of(team, {1}), 1);
    meet.arrive_and_wait();
    if (rank == 1) {
      EXPECT_EQ(survivors_of(team).status, TORII_PEER_LOST);
    }
  });
}

/// Ranks that come and give up at any time: all answers of an attempt are alike, and at last there is a team.
TEST_P(Survivors, OfRanksThatComeLateAgainAndAgain) {
  on_failed_team(3, "0.3", [&](torii_team* team, int rank, std::barrier<>& meet) {
    std::this_thread::sleep_for(rank * 160ms);
    Answer answer = survivors_of(team);
    int attempts = 1;
    for (; answer.status == TORII_TIMEOUT && attempts < 20; ++attempts) answer = survivors_of(team);
    expect_works(answer, 3);
    meet.arrive_and_wait();
  });
}

TEST(SurvivorsOptions, AreForSurvivorsOnly) {
  ThreadTeam two;
  two.settings = "TIMEOUT=5";
  run_as_threads(two, [](torii_context* context, torii_team* team) {
    const int without[] = {1 - torii_team_rank(team)};
    torii_team_options options = {};
    options.size = sizeof(options);
    options.without = without;
    options.without_count = 1;
    torii_team* part = nullptr;
    EXPECT_EQ(torii_team_create(context, &options, &part), TORII_INVALID_ARGUMENT);
    EXPECT_NE(last_error().find("only torii_team_survivors"), std::string::npos) << last_error();
    EXPECT_EQ(torii_team_split(team, 0, 0, &options, &part), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_team_survivors(team, &options, &part), TORII_INVALID_ARGUMENT);
    EXPECT_NE(last_error().find("not poisoned"), std::string::npos) << last_error();
    EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
    EXPECT_EQ(torii_team_absent(team, nullptr, 0), 0);
    EXPECT_EQ(torii_team_absent(nullptr, nullptr, 0), -1);
  });
}

INSTANTIATE_TEST_SUITE_P(All, Survivors, testing::ValuesIn(places()), place_name);

}  // namespace
}  // namespace torii::tests
