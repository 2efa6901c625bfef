// SPDX-License-Identifier: Apache-2.0
// Teams that are destroyed while operations are under way: these end, on all ranks, and nobody waits.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

const char* const kReason = "it destroyed the team before its operations had ended";

bool says(const char* what) { return std::string(torii_last_error()).find(what) != std::string::npos; }

/// A team of its own, which the test destroys.
torii_team* twin_of(torii_team* team) {
  torii_team* twin = nullptr;
  EXPECT_EQ(torii_team_split(team, 0, 0, nullptr, &twin), TORII_OK) << torii_last_error();
  return twin;
}

TEST(Destroying, EndsOperationsOnAllRanks) {
  std::atomic<bool> is_destroyed = false;
  run_as_threads(team_of(3), [&](torii_context* context, torii_team* team) {
    torii_team* const twin = twin_of(team);
    std::int64_t one = 1;
    std::array<std::int64_t, 2> sums = {};
    std::array<torii_request*, 2> requests = {};
    const int rank = torii_team_rank(team);
    if (rank != 2) {
      for (std::size_t i = 0; i < 2; ++i) {
        const torii_call call = make_call(TORII_ALLREDUCE, &one, &sums[i], 1, TORII_I64);
        ASSERT_EQ(torii_start(twin, &call, &requests[i]), TORII_OK);
      }
    }
    EXPECT_EQ(torii_barrier(team), TORII_OK);
    if (rank == 0) {
      EXPECT_EQ(torii_team_destroy(twin), TORII_OK) << torii_last_error();
      is_destroyed = true;
      EXPECT_EQ(torii_context_destroy(context), TORII_INVALID_ARGUMENT) << "two teams: one is left by its requests";
      EXPECT_TRUE(says("2 teams of the context are alive")) << torii_last_error();
      int done = 0;
      EXPECT_EQ(torii_test(&requests[0], &done), TORII_ABORTED);
      EXPECT_TRUE(done != 0 && says(kReason)) << torii_last_error();
      EXPECT_EQ(torii_wait(&requests[1]), TORII_ABORTED);
    } else if (rank == 1) {
      EXPECT_EQ(torii_wait(&requests[0]), TORII_ABORTED);
      EXPECT_TRUE(says("aborted by rank 0") && says(kReason)) << torii_last_error();
      EXPECT_EQ(torii_wait(&requests[1]), TORII_ABORTED);
      EXPECT_EQ(torii_team_destroy(twin), TORII_OK);
    } else {
      // It has not come to the call when the team is destroyed; it learns of the end when it does.
      while (!is_destroyed) std::this_thread::yield();
      EXPECT_EQ(torii_allreduce(twin, &one, sums.data(), 1, TORII_I64, TORII_SUM), TORII_ABORTED);
      EXPECT_EQ(torii_team_destroy(twin), TORII_OK);
    }
    EXPECT_EQ(requests[0], nullptr);
    EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
  });
}

TEST(Destroying, LeavesEndedAndPersistentOperationsAlone) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    torii_team* const twin = twin_of(team);
    std::int64_t one = 1;
    std::int64_t sum = 0;
    std::int64_t other = 0;
    torii_request* persistent = nullptr;
    torii_request* started = nullptr;
    torii_call call = make_call(TORII_ALLREDUCE, &one, &sum, 1, TORII_I64);
    ASSERT_EQ(torii_prepare(twin, &call, &persistent), TORII_OK);
    ASSERT_EQ(torii_restart(persistent), TORII_OK);
    ASSERT_EQ(torii_wait(&persistent), TORII_OK);
    call.result = &other;
    ASSERT_EQ(torii_start(twin, &call, &started), TORII_OK);
    while (other != 2) EXPECT_EQ(torii_progress(torii_team_context(twin), nullptr), TORII_OK);
    EXPECT_EQ(torii_barrier(team), TORII_OK);
    // Nothing runs: no rank is disturbed, and the requests answer as before.
    EXPECT_EQ(torii_team_destroy(twin), TORII_OK);
    EXPECT_EQ(torii_team_destroy(twin), TORII_INVALID_ARGUMENT);
    EXPECT_TRUE(says("the team has been destroyed")) << torii_last_error();
    EXPECT_EQ(torii_wait(&started), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_wait(&persistent), TORII_OK);
    EXPECT_EQ(torii_restart(persistent), TORII_INVALID_ARGUMENT);
    EXPECT_TRUE(says("the team of the request has been destroyed")) << torii_last_error();
    EXPECT_EQ(torii_request_free(&persistent), TORII_OK);
    EXPECT_EQ(sum, 2);
    EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
  });
}

TEST(Destroying, AReceiveThatHasMetNoSendDisturbsNobody) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    torii_team* const twin = twin_of(team);
    std::int64_t one = 1;
    std::int64_t sum = 0;
    std::int64_t place = 0;
    torii_request* receive = nullptr;
    ASSERT_EQ(torii_start_recv(twin, &place, 1, TORII_I64, TORII_ANY_RANK, 0, nullptr, &receive), TORII_OK);
    if (torii_team_rank(team) == 0) {
      EXPECT_EQ(torii_allreduce(twin, &one, &sum, 1, TORII_I64, TORII_SUM), TORII_OK);
      ASSERT_EQ(torii_team_destroy(twin), TORII_OK);
      EXPECT_EQ(torii_wait(&receive), TORII_ABORTED);
      EXPECT_TRUE(says("the team was destroyed before the receive had met a send")) << torii_last_error();
      EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
    } else {
      EXPECT_EQ(torii_allreduce(twin, &one, &sum, 1, TORII_I64, TORII_SUM), TORII_OK);
      EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
      // Rank 0 has gone, which is no failure while nothing is asked of it.
      EXPECT_EQ(torii_team_destroy(twin), TORII_OK);
      EXPECT_EQ(torii_wait(&receive), TORII_ABORTED);
    }
    EXPECT_EQ(receive, nullptr);
  });
}

TEST(Destroying, ASendThatIsUnderWayEndsOnBothRanks) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    torii_team* const twin = twin_of(team);
    std::vector<std::int64_t> data(1 << 16);
    torii_request* request = nullptr;
    if (torii_team_rank(team) == 0) {
      ASSERT_EQ(torii_start_send(twin, data.data(), data.size(), TORII_I64, 1, 0, &request), TORII_OK);
      ASSERT_NE(request, nullptr);
      EXPECT_EQ(torii_team_destroy(twin), TORII_OK);
      EXPECT_EQ(torii_wait(&request), TORII_ABORTED);
      EXPECT_TRUE(says(kReason)) << torii_last_error();
      EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
    } else {
      EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_recv(twin, data.data(), data.size(), TORII_I64, 0, 0, nullptr), TORII_ABORTED);
      EXPECT_TRUE(says("aborted by rank 0")) << torii_last_error();
      EXPECT_EQ(torii_team_destroy(twin), TORII_OK);
    }
  });
}

}  // namespace
}  // namespace torii::tests
