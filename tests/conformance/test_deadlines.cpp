// SPDX-License-Identifier: Apache-2.0
// Deadlines of teams and of calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <thread>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

using namespace std::chrono_literals;

torii_team* part_with_deadline(torii_team* parent, double seconds) {
  torii_team_options options = {};
  options.size = sizeof(options);
  options.timeout_seconds = seconds;
  torii_team* part = nullptr;
  EXPECT_EQ(torii_team_split(parent, 0, 0, &options, &part), TORII_OK) << last_error();
  return part;
}

torii_call call_with_deadline(Operation& one, double seconds) {
  torii_call call = one.call();
  call.timeout_seconds = seconds;
  return call;
}

/// Rank 0 makes a call to which rank 1 does not come, and has to give up after 0.3 s.
void expect_short(double of_setting, double of_team, double of_call,
                  const std::function<torii_status(torii_team*, const torii_call&)>& run) {
  std::atomic<bool> is_over = false;
  run_as_threads(team_of(2, "TIMEOUT=" + std::to_string(of_setting)), [&](torii_context*, torii_team* parent) {
    torii_team* const team = part_with_deadline(parent, of_team);
    ASSERT_NE(team, nullptr);
    Operation one(100, torii_team_rank(team), 1);
    if (torii_team_rank(team) == 0) {
      const torii_call call = call_with_deadline(one, of_call);
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(run(team, call), TORII_TIMEOUT);
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      EXPECT_NE(last_error().find("no progress for 300 ms in allreduce"), std::string::npos) << last_error();
      EXPECT_NE(last_error().find("not come to the call: rank 1"), std::string::npos) << last_error();
      EXPECT_GT(waited.count(), 0.28);
      EXPECT_LT(waited.count(), 3);
      is_over = true;
    } else {
      while (!is_over) std::this_thread::sleep_for(1ms);
      EXPECT_EQ(torii_barrier(team), TORII_TIMEOUT) << "all members have the cause";
    }
    EXPECT_EQ(torii_team_destroy(team), TORII_OK) << last_error();
  });
}

torii_status run_blocking(torii_team* team, const torii_call& call) { return torii_run(team, &call); }

torii_status start_and_wait(torii_team* team, const torii_call& call) {
  torii_request* request = nullptr;
  const torii_status status = torii_start(team, &call, &request);
  return status == TORII_OK ? torii_wait(&request) : status;
}

torii_status start_and_test(torii_team* team, const torii_call& call) {
  torii_request* request = nullptr;
  torii_status status = torii_start(team, &call, &request);
  int done = 0;
  while (status == TORII_OK && done == 0) {
    std::this_thread::sleep_for(1ms);
    status = torii_test(&request, &done);
  }
  return status;
}

torii_status start_and_wait_for_moments(torii_team* team, const torii_call& call) {
  torii_request* request = nullptr;
  torii_status status = torii_start(team, &call, &request);
  int done = 0;
  while (status == TORII_OK && done == 0) status = torii_wait_for(&request, 0.02, &done);
  return status;
}

TEST(Deadlines, OfATeam) { expect_short(20, 0.3, 0, run_blocking); }
TEST(Deadlines, OfATeamBeforeTheSetting) { expect_short(0.05, 0.3, 0, run_blocking); }
TEST(Deadlines, OfABlockingCall) { expect_short(20, 0, 0.3, run_blocking); }
TEST(Deadlines, OfACallBeforeThatOfTheTeam) { expect_short(20, 0.05, 0.3, run_blocking); }
TEST(Deadlines, OfARequestThatIsAwaited) { expect_short(20, 0, 0.3, start_and_wait); }
TEST(Deadlines, OfARequestThatIsTested) { expect_short(20, 0, 0.3, start_and_test); }
TEST(Deadlines, OfARequestThatIsAwaitedForMoments) { expect_short(20, 0, 0.3, start_and_wait_for_moments); }

/// A call without a deadline of its own has the team's, though its plan was made for one that had. Rank 1 is late.
TEST(Deadlines, AreNotThoseOfTheCallBefore) {
  std::atomic<int> calls = 0;
  run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    Operation one(100, rank, 1);
    const torii_call with = call_with_deadline(one, 0.3);
    const torii_call without = one.call();
    for (int i = 0; i < 3; ++i) ASSERT_EQ(torii_run(team, &with), TORII_OK) << last_error();
    for (int i = 0; i < 3; ++i) {
      // The first ones of these wait in a start, the others in a call like the last one.
      while (rank == 1 && calls <= i) std::this_thread::sleep_for(1ms);
      if (rank == 1) std::this_thread::sleep_for(600ms);
      if (rank == 0) ++calls;
      ASSERT_EQ(torii_run(team, &without), TORII_OK) << last_error();
      EXPECT_TRUE(one.is_right(2, 1));
    }
  });
}

TEST(Deadlines, OfAPersistentOperationHoldForEachStart) {
  std::atomic<bool> is_over = false;
  run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
    Operation one(100, torii_team_rank(team), 1);
    const torii_call call = call_with_deadline(one, 0.3);
    ASSERT_EQ(torii_prepare(team, &call, &one.request), TORII_OK) << last_error();
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(torii_restart(one.request), TORII_OK) << last_error();
      EXPECT_EQ(torii_wait(&one.request), TORII_OK) << last_error();
    }
    if (torii_team_rank(team) == 0) {
      ASSERT_EQ(torii_restart(one.request), TORII_OK) << last_error();
      int done = 0;
      torii_status status = TORII_OK;
      while (done == 0) status = torii_test(&one.request, &done);
      EXPECT_EQ(status, TORII_TIMEOUT);
      EXPECT_NE(last_error().find("no progress for 300 ms"), std::string::npos) << last_error();
      is_over = true;
    }
    while (!is_over) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(torii_request_free(&one.request), TORII_OK) << last_error();
  });
}

/// Rank 0 has sent what it owes and computes; rank 2 does not come. Only rank 2 is to blame.
TEST(Deadlines, NameNoMemberThatHasDoneItsPart) {
  std::atomic<bool> is_over = false;
  run_as_threads(team_of(3, "TIMEOUT=0.4"), [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    float sum = 0;
    const auto reduce = [&] {
      const float own = 1;
      return torii_reduce(team, &own, &sum, 1, TORII_F32, TORII_SUM, 1);
    };
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(reduce(), TORII_OK) << last_error();
      ASSERT_EQ(torii_barrier(team), TORII_OK) << last_error();
    }
    if (rank != 2) {
      EXPECT_EQ(reduce(), rank == 0 ? TORII_OK : TORII_TIMEOUT);
    }
    if (rank == 1) {
      const std::string cause = last_error();
      const std::string names = cause.substr(std::min(cause.find(';'), cause.size()));
      EXPECT_NE(names.find("; not come to the call: rank 2"), std::string::npos) << cause;
      EXPECT_EQ(names.find("rank 0"), std::string::npos) << cause;
      is_over = true;
    }
    while (!is_over) std::this_thread::sleep_for(1ms);
  });
}

TEST(Deadlines, ThatAreNoneAreRefused) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    Operation one(100, torii_team_rank(team), 1);
    for (const double seconds : {-1.0, 1000001.0, std::nan(""), HUGE_VAL}) {
      const torii_call call = call_with_deadline(one, seconds);
      EXPECT_EQ(torii_run(team, &call), TORII_INVALID_ARGUMENT) << seconds;
      EXPECT_NE(last_error().find("timeout_seconds is "), std::string::npos) << last_error();
      EXPECT_NE(last_error().find("must be above 0 and at most 1000000, or 0 for that of the team"), std::string::npos)
          << last_error();
    }
    // The option of a team is refused on all ranks, wherever it is wrong.
    torii_team_options options = {};
    options.size = sizeof(options);
    options.timeout_seconds = torii_team_rank(team) == 1 ? -1 : 5;
    torii_team* part = nullptr;
    EXPECT_EQ(torii_team_split(team, 0, 0, &options, &part), TORII_INVALID_ARGUMENT);
    EXPECT_NE(last_error().find("timeout_seconds is -1.000000; it must be above 0 and at most 1000000, or 0 for the "
                                "setting TIMEOUT"),
              std::string::npos)
        << last_error();
    EXPECT_EQ(part, nullptr);
    EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
  });
}

}  // namespace
}  // namespace torii::tests
