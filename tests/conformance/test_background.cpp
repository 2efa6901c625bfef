// SPDX-License-Identifier: Apache-2.0
// Operations that move while their callers do something else: teams used by threads of their own, progress threads, and
// a rank that waits on one team while it moves another.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// A second team of all ranks.
torii_team* twin_of(torii_team* team, std::size_t segment_bytes = 0) {
  torii_team_options options = {};
  options.size = sizeof(options);
  options.segment_bytes = segment_bytes;
  torii_team* twin = nullptr;
  EXPECT_EQ(torii_team_split(team, 0, torii_team_rank(team), &options, &twin), TORII_OK) << torii_last_error();
  return twin;
}

void run_many(torii_team* team, int calls, int first_number) {
  for (int call = 0; call < calls; ++call) {
    Operation one(kCounts[call % 5], torii_team_rank(team), first_number + call);
    const torii_call arguments = one.call();
    ASSERT_EQ(torii_run(team, &arguments), TORII_OK) << torii_last_error();
    ASSERT_TRUE(one.is_right(torii_team_ranks(team), first_number + call)) << "call " << call;
  }
}

TEST(Teams, MayBeUsedByDifferentThreadsAtOnce) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    torii_team* const twin = twin_of(team);
    ASSERT_NE(twin, nullptr);
    std::thread other([twin] { run_many(twin, 100, 5000); });
    run_many(team, 100, 0);
    other.join();
    EXPECT_EQ(torii_team_destroy(twin), TORII_OK) << torii_last_error();
  });
}

/// Two threads of each rank, both with operations in flight, so that each moves the other's in the background.
void two_threads_move_each_others_requests(const std::string& settings) {
  run_as_threads(team_of(2, settings), [](torii_context*, torii_team* team) {
    torii_team* const twin = twin_of(team);
    ASSERT_NE(twin, nullptr);
    const auto use = [](torii_team* own, int first) {
      for (int round = 0; round < 20; ++round) {
        Operation a(20'000, torii_team_rank(own), first + round);
        Operation b(3, torii_team_rank(own), first - round);
        const torii_call call_a = a.call();
        const torii_call call_b = b.call();
        ASSERT_EQ(torii_start(own, &call_a, &a.request), TORII_OK) << torii_last_error();
        ASSERT_EQ(torii_start(own, &call_b, &b.request), TORII_OK) << torii_last_error();
        ASSERT_EQ(torii_wait(&b.request), TORII_OK) << torii_last_error();
        ASSERT_EQ(torii_wait(&a.request), TORII_OK) << torii_last_error();
        ASSERT_TRUE(a.is_right(2, first + round) && b.is_right(2, first - round)) << "round " << round;
      }
    };
    std::thread other([&] { use(twin, 7000); });
    use(team, 100);
    other.join();
    EXPECT_EQ(torii_team_destroy(twin), TORII_OK) << torii_last_error();
  });
}

TEST(Teams, OfTwoThreadsMoveEachOthersRequests) { two_threads_move_each_others_requests(""); }
TEST(ProgressThreads, MoveRequestsOfSeveralTeamsBesideTheirCallers) {
  for (const char* settings : {"HELPERS=1", "HELPERS=3"}) two_threads_move_each_others_requests(settings);
}

/// Starts an operation of very many segments, leaves it alone, and looks once. Returns how many ranks find it done.
int done_at_one_look(const std::string& settings) {
  std::atomic<int> done_ranks = 0;
  run_as_threads(team_of(2, settings), [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    Operation operation(2'000'000, rank, 1);
    const torii_call call = operation.call();
    ASSERT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
    ASSERT_EQ(torii_start(team, &call, &operation.request), TORII_OK) << torii_last_error();
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    int done = 0;
    ASSERT_EQ(torii_test(&operation.request, &done), TORII_OK) << torii_last_error();
    done_ranks += done;
    if (done == 0) {
      ASSERT_EQ(torii_wait(&operation.request), TORII_OK) << torii_last_error();
    }
    EXPECT_TRUE(operation.is_right(2, 1));
  });
  return done_ranks;
}

TEST(ProgressThreads, MoveAnOperationWhileItsCallerComputes) {
  EXPECT_EQ(done_at_one_look("HELPERS=1"), 2);
  EXPECT_EQ(done_at_one_look("HELPERS=4"), 2);
  EXPECT_LT(done_at_one_look(""), 2) << "without helpers nobody moves it";
}

/// Rank 0 starts on A and waits on B; rank 1 waits on A first and enters B only then. Without background progress
/// rank 0 would never move A, and both would wait until the deadline.
TEST(Teams, AWaitOnOneMovesTheOther) {
  for (const std::size_t count : {std::size_t{4}, std::size_t{500'000}}) {
    run_as_threads(team_of(2), [&](torii_context*, torii_team* a) {
      torii_team* const b = twin_of(a);
      ASSERT_NE(b, nullptr);
      const int rank = torii_team_rank(a);
      for (int round = 0; round < 5; ++round) {
        Operation on_a(count, rank, round);
        const torii_call call = on_a.call();
        ASSERT_EQ(torii_start(a, &call, &on_a.request), TORII_OK) << torii_last_error();
        if (rank == 1) {
          ASSERT_EQ(torii_wait(&on_a.request), TORII_OK) << torii_last_error();
        }
        ASSERT_EQ(torii_barrier(b), TORII_OK) << torii_last_error();
        if (rank == 0) {
          ASSERT_EQ(torii_wait(&on_a.request), TORII_OK) << torii_last_error();
        }
        EXPECT_TRUE(on_a.is_right(2, round));
      }
      EXPECT_EQ(torii_team_destroy(b), TORII_OK) << torii_last_error();
    });
  }
}

/// ProgressThreads move the operations between two calls of torii_test, so the caller itself never finds anything to
/// move.
TEST(Requests, WhatHelpersMoveIsProgress) {
  run_as_threads(team_of(2, "HELPERS=1\nTIMEOUT=0.4"), [](torii_context*, torii_team* team) {
    std::vector<std::int64_t> input(1000, 1);
    std::vector<std::int64_t> result(input.size());
    const torii_call call = make_call(TORII_ALLREDUCE, input.data(), result.data(), input.size(), TORII_I64);
    torii_status status = TORII_OK;
    for (int operation = 0; operation < 25 && status == TORII_OK; ++operation) {
      torii_request* request = nullptr;
      if (torii_team_rank(team) == 1) usleep(5000);  // so that rank 0 looks in vain for a while
      status = torii_start(team, &call, &request);
      for (int done = 0; done == 0 && status == TORII_OK;) {
        usleep(1000);
        for (int i = 0; i < 40 && done == 0 && status == TORII_OK; ++i) status = torii_test(&request, &done);
      }
      usleep(25'000);
    }
    EXPECT_EQ(status, TORII_OK) << torii_last_error();
  });
}

}  // namespace
}  // namespace torii::tests
