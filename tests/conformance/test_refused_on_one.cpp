// SPDX-License-Identifier: Apache-2.0
// Calls that one rank refuses and others make: nobody gets another call's result, and all learn the reason.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

const ThreadTeam kTwo = {2, "TIMEOUT=20", "", "", "", 0};

bool says(const char* text, const char* part) { return std::string(text).find(part) != std::string::npos; }

/// Ranks on one node, and where a fabric is there also on two.
std::vector<ThreadTeam> on_one_and_two_nodes(int ranks) {
  ThreadTeam team = kTwo;
  team.ranks = ranks;
  std::vector<ThreadTeam> teams = {team};
#ifdef TORII_TEST_LIBFABRIC
  for (int rank = 0; rank < ranks; ++rank) team.nodes.push_back(rank == 0 ? 0 : 1);
  teams.push_back(team);
#endif
  return teams;
}

/// The senders of a reduce do not wait, so rank 1 is calls ahead when rank 0 makes its second one.
TEST(RefusedOnOneRank, LaterCallsPairWithNothingEarlier) {
  run_as_threads(kTwo, [](torii_context*, torii_team* team) {
    const bool is_root = torii_team_rank(team) == 0;
    for (int value = 1; value <= 3; ++value) {
      const int mine = is_root ? 0 : value;
      int sum = -1;
      int* const result = is_root && value == 1 ? nullptr : &sum;
      const torii_status status = torii_reduce(team, &mine, result, 1, TORII_I32, TORII_SUM, 0);
      if (result == nullptr) {
        EXPECT_EQ(status, TORII_INVALID_ARGUMENT);
      } else if (is_root) {
        EXPECT_EQ(status, value == 2 ? TORII_MISMATCH : TORII_POISONED) << "call " << value << " gave " << sum;
        EXPECT_TRUE(says(torii_last_error(), "rank 0 on host")) << torii_last_error();
        EXPECT_TRUE(says(torii_last_error(), "refused its call 1 on this team")) << torii_last_error();
        EXPECT_TRUE(says(torii_last_error(), "result is NULL, but count is not 0")) << torii_last_error();
      }
    }
    EXPECT_NE(torii_barrier(team), TORII_OK);
  });
}

/// The other direction: the root of a broadcast refuses, and its receivers wait for what it sends next.
TEST(RefusedOnOneRank, ReceiversTakeNothingLater) {
  run_as_threads(kTwo, [](torii_context*, torii_team* team) {
    int value = torii_team_rank(team) == 0 ? 7 : -1;
    EXPECT_EQ(torii_broadcast(team, &value, 1, TORII_I32, 0), TORII_OK) << torii_last_error();
    if (torii_team_rank(team) == 0) {
      EXPECT_EQ(torii_broadcast(team, nullptr, 1, TORII_I32, 0), TORII_INVALID_ARGUMENT);
      value = 8;
      (void)torii_broadcast(team, &value, 1, TORII_I32, 0);
    } else {
      value = -1;
      EXPECT_EQ(torii_broadcast(team, &value, 1, TORII_I32, 0), TORII_MISMATCH);
      EXPECT_EQ(value, -1) << "it was sent in another call";
      EXPECT_TRUE(says(torii_last_error(), "refused its call 2 on this team")) << torii_last_error();
    }
    EXPECT_NE(torii_barrier(team), TORII_OK);
  });
}

/// Ranks may refuse a call for different reasons, and any number of calls before their peers come to them.
TEST(RefusedOnOneRank, ATeamThatRefusesAsOneGoesOn) {
  run_as_threads({3, "TIMEOUT=20", "", "", "", 0}, [](torii_context*, torii_team* team) {
    int value = 1;
    int sum = 0;
    for (int round = 0; round < 50; ++round) {
      for (int i = 0; i < 30; ++i) {
        if (torii_team_rank(team) == 0) {
          EXPECT_EQ(torii_allreduce(team, &value, nullptr, 1, TORII_I32, TORII_SUM), TORII_INVALID_ARGUMENT);
        } else {
          EXPECT_EQ(torii_run(team, nullptr), TORII_INVALID_ARGUMENT);
        }
      }
      sum = 0;
      EXPECT_EQ(torii_allreduce(team, &value, &sum, 1, TORII_I32, TORII_SUM), TORII_OK) << torii_last_error();
      EXPECT_EQ(sum, 3);
    }
  });
}

/// A rank that ignores statuses: its first reason is told, however many refusals and calls follow.
TEST(RefusedOnOneRank, AnyNumberOfTimesInARow) {
  for (const ThreadTeam& ranks : on_one_and_two_nodes(3)) {
    for (const int times : {1, 8, 9, 41}) {
      for (const int alike : {0, 3}) {
        run_as_threads(ranks, [=](torii_context*, torii_team* team) {
          int value = 1;
          int sum = 0;
          for (int i = 0; i < alike; ++i) EXPECT_EQ(torii_run(team, nullptr), TORII_INVALID_ARGUMENT);
          if (torii_team_rank(team) == 0) {
            for (int i = 0; i < times; ++i)
              EXPECT_EQ(torii_allreduce(team, &value, nullptr, 1, TORII_I32, TORII_SUM), TORII_INVALID_ARGUMENT);
          }
          const auto begin = std::chrono::steady_clock::now();
          EXPECT_EQ(torii_allreduce(team, &value, &sum, 1, TORII_I32, TORII_SUM), TORII_MISMATCH);
          const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
          EXPECT_TRUE(says(torii_last_error(), "result is NULL, but count is not 0")) << torii_last_error();
          EXPECT_TRUE(says(torii_last_error(), "rank 0 on host")) << torii_last_error();
          EXPECT_TRUE(says(torii_last_error(), alike == 0 ? "refused its call 1 on" : "refused its call 4 on"))
              << torii_last_error();
          EXPECT_LT(waited.count(), 5);
        });
      }
    }
  }
}

/// Rank 0 makes calls that need nobody, or start only, and waits in another team then: it does not look, and comes to
/// none of rank 1's later calls.
TEST(RefusedOnOneRank, WhileThePeerWaitsInAnotherTeam) {
  for (const bool is_started : {false, true}) {
    run_as_threads(kTwo, [=](torii_context*, torii_team* team) {
      torii_team* twin = nullptr;
      ASSERT_EQ(torii_team_split(team, 0, 0, nullptr, &twin), TORII_OK);
      int value = 1;
      int sum = 0;
      int before = 0;
      const torii_call call = make_call(TORII_ALLREDUCE, &value, &sum, 1, TORII_I32);
      torii_request* request = nullptr;
      if (torii_team_rank(team) == 0) {
        if (is_started) {
          EXPECT_EQ(torii_start(twin, &call, &request), TORII_OK) << torii_last_error();
        }
        EXPECT_EQ(torii_exscan(twin, &value, &before, 1, TORII_I32, TORII_SUM), TORII_OK) << torii_last_error();
      } else {
        for (int i = 0; i < 12; ++i) EXPECT_EQ(torii_run(twin, nullptr), TORII_INVALID_ARGUMENT);
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(torii_exscan(twin, &value, &before, 1, TORII_I32, TORII_SUM), TORII_MISMATCH);
        const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
        EXPECT_TRUE(says(torii_last_error(), "rank 1 on host")) << torii_last_error();
        EXPECT_TRUE(says(torii_last_error(), "refused its call 1 on this team")) << torii_last_error();
        EXPECT_LT(waited.count(), 5);
      }
      EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_wait(&request), request == nullptr ? TORII_OK : TORII_MISMATCH) << torii_last_error();
      EXPECT_EQ(torii_team_destroy(twin), TORII_OK);
    });
  }
}

/// Also where others have failed the team by then, which is a matter of time.
TEST(RefusedOnOneRank, ARankHearsOfItsOwnMistakeFirst) {
  run_as_threads(kTwo, [](torii_context*, torii_team* team) {
    torii_team* twin = nullptr;
    ASSERT_EQ(torii_team_split(team, 0, 0, nullptr, &twin), TORII_OK);
    int value = 1;
    if (torii_team_rank(team) == 1) {
      EXPECT_EQ(torii_team_abort(twin, "enough"), TORII_OK);
    }
    ASSERT_EQ(torii_barrier(team), TORII_OK);
    const torii_call bad = make_call(TORII_ALLREDUCE, &value, nullptr, 1, TORII_I32);
    torii_request* request = nullptr;
    const auto expect_own = [](torii_status status, const char* text) {
      EXPECT_EQ(status, TORII_INVALID_ARGUMENT);
      EXPECT_TRUE(says(torii_last_error(), text)) << torii_last_error();
    };
    for (int round = 0; round < 2; ++round) {
      expect_own(torii_run(twin, &bad), "result is NULL");
      expect_own(torii_start(twin, &bad, &request), "result is NULL");
      expect_own(torii_prepare(twin, &bad, &request), "result is NULL");
      expect_own(torii_send(twin, &value, 1, TORII_I32, 7, 0), "the rank is 7");
      EXPECT_EQ(torii_barrier(twin), round == 0 ? TORII_ABORTED : TORII_POISONED) << torii_last_error();
    }
    EXPECT_EQ(torii_team_destroy(twin), TORII_OK);
  });
}

TEST(RefusedOnOneRank, APersistentOperationThatOneRankStartsTooOften) {
  run_as_threads(kTwo, [](torii_context*, torii_team* team) {
    int value = 1;
    int sum = 0;
    const torii_call call = make_call(TORII_ALLREDUCE, &value, &sum, 1, TORII_I32);
    torii_request* request = nullptr;
    ASSERT_EQ(torii_prepare(team, &call, &request), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_restart(request), TORII_OK);
    if (torii_team_rank(team) == 0) {
      EXPECT_EQ(torii_restart(request), TORII_INVALID_ARGUMENT);
    }
    EXPECT_EQ(torii_wait(&request), TORII_OK);
    torii_status status = torii_restart(request);
    if (status == TORII_OK) status = torii_wait(&request);
    EXPECT_EQ(status, TORII_MISMATCH);
    EXPECT_TRUE(says(torii_last_error(), "the request is active")) << torii_last_error();
    EXPECT_EQ(torii_request_free(&request), TORII_OK);
  });
}

/// Which root a broadcast has decides whose puts land in whose slots. Ranks that name different roots must not mix.
TEST(DifferingCalls, NeverMixTheirData) {
  for (int round = 0; round < 20; ++round) {
    run_as_threads({3, "TIMEOUT=20", "", "", "", 0}, [](torii_context*, torii_team* team) {
      const int rank = torii_team_rank(team);
      std::vector<int> values(20000, rank);
      const int root = rank == 2 ? 2 : 0;
      if (torii_broadcast(team, values.data(), values.size(), TORII_I32, root) == TORII_OK) {
        EXPECT_EQ(values, std::vector<int>(values.size(), root)) << "rank " << rank;
      }
      EXPECT_NE(torii_barrier(team), TORII_OK);
    });
  }
}

/// More plans in place than a rank publishes words for, on ranks that prepare at different paces.
TEST(ManyPlans, MayBePutInPlaceAtAnyPace) {
  constexpr int kPlans = 40;
  run_as_threads({2, "TIMEOUT=20", "", "", "", 0}, [](torii_context*, torii_team* team) {
    const bool waits_at_once = torii_team_rank(team) == 1;
    std::vector<torii_request*> requests(kPlans, nullptr);
    std::vector<int> values(kPlans, 1);
    std::vector<int> sums(kPlans, 0);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const torii_call call = make_call(TORII_ALLREDUCE, &values[i], &sums[i], 1, TORII_I32);
      ASSERT_EQ(torii_prepare(team, &call, &requests[i]), TORII_OK) << torii_last_error();
      ASSERT_EQ(torii_restart(requests[i]), TORII_OK) << torii_last_error();
      if (waits_at_once) {
        ASSERT_EQ(torii_wait(&requests[i]), TORII_OK) << torii_last_error();
      }
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(torii_wait(&requests[i]), TORII_OK) << torii_last_error();
      EXPECT_EQ(sums[i], 2);
      EXPECT_EQ(torii_request_free(&requests[i]), TORII_OK);
    }
  });
}

/// The first start of an operation may come long after many others were prepared.
TEST(ManyPlans, MayBeStartedLate) {
  constexpr std::size_t kPlans = 33;
  run_as_threads({2, "TIMEOUT=20", "", "", "", 0}, [](torii_context*, torii_team* team) {
    std::vector<torii_request*> requests(kPlans, nullptr);
    const int value = 1;
    int sum = 0;
    const torii_call call = make_call(TORII_ALLREDUCE, &value, &sum, 1, TORII_I32);
    for (std::size_t i = 0; i + 1 < kPlans; ++i) ASSERT_EQ(torii_prepare(team, &call, &requests[i]), TORII_OK);
    if (torii_team_rank(team) == 0) {
      ASSERT_EQ(torii_prepare(team, &call, &requests.back()), TORII_OK);
    }
    EXPECT_EQ(torii_restart(requests.front()), TORII_OK);
    EXPECT_EQ(torii_wait(&requests.front()), TORII_OK) << torii_last_error();
    EXPECT_EQ(sum, 2);
    if (torii_team_rank(team) == 1) {
      ASSERT_EQ(torii_prepare(team, &call, &requests.back()), TORII_OK);
    }
    for (torii_request*& request : requests) EXPECT_EQ(torii_request_free(&request), TORII_OK);
  });
}

/// What a collective does not read may differ between ranks, and later calls go on.
TEST(DifferingCalls, AreEqualWhereTheCollectiveDoesNotLook) {
  run_as_threads({2, "TIMEOUT=20", "", "", "", 0}, [](torii_context*, torii_team* team) {
    const bool is_first = torii_team_rank(team) == 0;
    int value = is_first ? 7 : 0;
    const torii_call call = make_call(TORII_BROADCAST, nullptr, &value, 1, is_first ? TORII_I32 : TORII_F32,
                                      is_first ? TORII_SUM : TORII_MAX);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
    EXPECT_EQ(value, 7);
    torii_call barrier = make_call(TORII_BARRIER, nullptr, nullptr, 0, is_first ? TORII_U8 : TORII_F64);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(torii_run(team, &barrier), TORII_OK) << torii_last_error();
    int sum = 0;
    EXPECT_EQ(torii_allreduce(team, &value, &sum, 1, TORII_I32, TORII_SUM), TORII_OK) << torii_last_error();
    EXPECT_EQ(sum, 14);
  });
}

TEST(DifferingCalls, AMemberThatLeavesInsteadIsNamed) {
  run_as_threads({2, "TIMEOUT=20", "", "", "", 0}, [](torii_context*, torii_team* team) {
    torii_team* part = nullptr;
    ASSERT_EQ(torii_team_split(team, 0, 0, nullptr, &part), TORII_OK);
    if (torii_team_rank(team) == 0) {
      int value = 0;
      EXPECT_EQ(torii_broadcast(part, &value, 1, TORII_I32, 1), TORII_MISMATCH);
      EXPECT_TRUE(says(torii_last_error(), "rank 1 on host")) << torii_last_error();
      EXPECT_TRUE(says(torii_last_error(), "destroyed the team before it came to broadcast")) << torii_last_error();
    }
    EXPECT_EQ(torii_team_destroy(part), TORII_OK);
  });
}

/// Also where earlier calls have agreed on the plan: no message of the new call shows that the member is not there.
TEST(DifferingCalls, AMemberThatLeavesAfterCallsIsNamed) {
  for (const ThreadTeam& ranks : on_one_and_two_nodes(2)) {
    for (const int calls : {1, 2, 5}) {
      run_as_threads(ranks, [=](torii_context*, torii_team* team) {
        torii_team* part = nullptr;
        ASSERT_EQ(torii_team_split(team, 0, 0, nullptr, &part), TORII_OK);
        int value = 1, sum = 0;
        for (int call = 0; call < calls; ++call) {
          ASSERT_EQ(torii_allreduce(part, &value, &sum, 1, TORII_I32, TORII_SUM), TORII_OK) << torii_last_error();
        }
        if (torii_team_rank(team) == 0) {
          EXPECT_EQ(torii_allreduce(part, &value, &sum, 1, TORII_I32, TORII_SUM), TORII_MISMATCH) << calls << " calls";
          EXPECT_TRUE(says(torii_last_error(), "rank 1 on host")) << torii_last_error();
          EXPECT_TRUE(says(torii_last_error(), "destroyed the team before it came to allreduce")) << torii_last_error();
        }
        EXPECT_EQ(torii_team_destroy(part), TORII_OK);
      });
    }
  }
}

/// Rank 1 has ended the call in which the root waits for rank 2.
TEST(DifferingCalls, AMemberMayLeaveAfterItsLastCall) {
  for (const ThreadTeam& ranks : on_one_and_two_nodes(3)) {
    run_as_threads(ranks, [](torii_context*, torii_team* team) {
      torii_team* part = nullptr;
      ASSERT_EQ(torii_team_split(team, 0, 0, nullptr, &part), TORII_OK);
      const int rank = torii_team_rank(team);
      int sum = 0;
      for (int call = 0; call < 6; ++call) {
        const int value = rank;
        if (rank == 2 && call == 5) std::this_thread::sleep_for(std::chrono::milliseconds(1200));
        EXPECT_EQ(torii_reduce(part, &value, &sum, 1, TORII_I32, TORII_SUM, 0), TORII_OK) << torii_last_error();
      }
      if (rank == 0) {
        EXPECT_EQ(sum, 3);
      }
      EXPECT_EQ(torii_team_destroy(part), TORII_OK);
    });
  }
}

}  // namespace
}  // namespace torii::tests
