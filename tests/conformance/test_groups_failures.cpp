// SPDX-License-Identifier: Apache-2.0
// Groups of collectives that are refused, on one rank or on all, and groups whose team fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// Three calls, the one in the middle bad where `is_bad`. Returns the group's status.
torii_status make_three(torii_team* team, const torii_call& bad, bool is_bad, torii_status& joined) {
  const std::size_t stride = std::max<std::size_t>(bad.count, 20);  // ranks that make all three may run them
  std::vector<int> data(3 * stride, 1);
  EXPECT_EQ(torii_group_begin(team), TORII_OK);
  joined = TORII_OK;
  for (std::size_t i = 0; i < 3; ++i) {
    torii_call call =
        make_call(bad.collective, &data[stride * i], &data[stride * i], bad.count, bad.type, bad.op, bad.root);
    if (i == 1 && is_bad) call = bad;
    const torii_status status = torii_run(team, &call);
    if (status != TORII_OK) joined = status;
  }
  return torii_group_end(team);
}

struct Bad {
  const char* text;
  bool is_refused_at_once;
  torii_call call;
};

std::vector<Bad> bad_calls() {
  static int data[60];
  torii_call no_input = make_call(TORII_ALLREDUCE, nullptr, data, 5, TORII_I32);
  torii_call no_result = make_call(TORII_ALLREDUCE, data, nullptr, 5, TORII_I32);
  torii_call long_one = make_call(TORII_ALLREDUCE, nullptr, data, 500'000, TORII_I32);
  torii_call bad_type = make_call(TORII_ALLREDUCE, data, data, 5, TORII_F32, TORII_BXOR);
  torii_call no_factor = make_call(TORII_ALLREDUCE, data, data, 5, TORII_F32, TORII_PREMUL_SUM);
  torii_call bad_size = make_call(TORII_ALLREDUCE, data, data, 5, TORII_I32);
  bad_size.size = 0;
  return {{"input is NULL", false, no_input},  {"result is NULL", false, no_result},
          {"input is NULL", false, long_one},  {"op bxor is not defined", false, bad_type},
          {"factor is NULL", true, no_factor}, {"torii_call.size is 0", true, bad_size}};
}

TEST(RefusedGroup, OnAllRanksLeavesTheTeamAsItIs) {
  run_as_threads(team_of(3), [](torii_context*, torii_team* team) {
    for (const Bad& bad : bad_calls()) {
      torii_status joined = TORII_OK;
      EXPECT_EQ(make_three(team, bad.call, true, joined), TORII_INVALID_ARGUMENT) << bad.text;
      EXPECT_NE(std::string(torii_last_error()).find(bad.text), std::string::npos) << torii_last_error();
      EXPECT_EQ(joined, bad.is_refused_at_once ? TORII_INVALID_ARGUMENT : TORII_OK) << bad.text;
      int sum = 1;
      ASSERT_EQ(torii_allreduce(team, &sum, &sum, 1, TORII_I32, TORII_SUM), TORII_OK) << torii_last_error();
      EXPECT_EQ(sum, 3);
    }
  });
}

TEST(RefusedGroup, OnOneRankIsToldToTheOthers) {
  for (const Bad& bad : bad_calls()) {
    if (std::string(bad.text).find("bxor") != std::string::npos) continue;  // bad for its neighbours too
    run_as_threads(team_of(3), [&](torii_context*, torii_team* team) {
      const int rank = torii_team_rank(team);
      torii_status joined = TORII_OK;
      torii_call right = bad.call;
      right.size = sizeof(right);
      if (right.op == TORII_PREMUL_SUM) right.op = TORII_SUM;
      const torii_status status = make_three(team, rank == 1 ? bad.call : right, rank == 1, joined);
      if (rank == 1) {
        EXPECT_EQ(status, TORII_INVALID_ARGUMENT);
        int sum = 1;
        EXPECT_EQ(torii_allreduce(team, &sum, &sum, 1, TORII_I32, TORII_SUM), TORII_MISMATCH);
      } else {
        EXPECT_EQ(status, TORII_MISMATCH) << bad.text;
      }
      EXPECT_NE(std::string(torii_last_error()).find("rank 1"), std::string::npos) << torii_last_error();
      EXPECT_NE(std::string(torii_last_error()).find(bad.text), std::string::npos) << torii_last_error();
    });
  }
}

/// By a binding, which has looked at the lengths itself.
TEST(RefusedGroup, ByTheCaller) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    int sum = 1;
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    ASSERT_EQ(torii_allreduce(team, &sum, &sum, 1, TORII_I32, TORII_SUM), TORII_OK);
    EXPECT_EQ(torii_refuse(team, "a buffer is too short"), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_refuse(team, "another reason"), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_group_end(team), TORII_INVALID_ARGUMENT);
    EXPECT_STREQ(torii_last_error(), "a buffer is too short");
    EXPECT_EQ(sum, 1) << "no call of a refused group is made";
    ASSERT_EQ(torii_allreduce(team, &sum, &sum, 1, TORII_I32, TORII_SUM), TORII_OK) << torii_last_error();
  });
}

/// Blocks of unequal lengths are read when the call joins.
TEST(RefusedGroup, WithWrongCounts) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    int data[2] = {};
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    EXPECT_EQ(torii_all_gatherv(team, data, 1, data, nullptr, nullptr, TORII_I32), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_reduce_scatterv(team, data, data, nullptr, TORII_I32, TORII_SUM), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(torii_group_end(team), TORII_INVALID_ARGUMENT);
    EXPECT_NE(std::string(torii_last_error()).find("result_counts is NULL"), std::string::npos) << torii_last_error();
    ASSERT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
  });
}

TEST(RefusedGroup, StillWaitsForItsSends) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    const std::vector<int> sent(50'000, rank);
    std::vector<int> got(sent.size(), -1);
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    ASSERT_EQ(torii_send(team, sent.data(), sent.size(), TORII_I32, 1 - rank, 0), TORII_OK);
    EXPECT_EQ(torii_refuse(team, "no"), TORII_INVALID_ARGUMENT);
    ASSERT_EQ(torii_recv(team, got.data(), got.size(), TORII_I32, 1 - rank, 0, nullptr), TORII_OK);
    EXPECT_EQ(torii_group_end(team), TORII_INVALID_ARGUMENT);
    EXPECT_STREQ(torii_last_error(), "no");
    EXPECT_EQ(got, std::vector<int>(sent.size(), 1 - rank));
  });
}

/// The arena of one rank is full: the packed copies have no place.
TEST(FailedGroup, WithoutMemoryIsToldToAll) {
  ThreadTeam options = team_of(2);
  options.settings = "ARENA=256M\nTIMEOUT=20";
  run_as_threads(options, [](torii_context* context, torii_team* team) {
    int data[2] = {1, 1};
    // Between nodes each channel takes memory with its first call.
    for (int channel = 0; channel < 2; ++channel) ASSERT_EQ(torii_barrier(team), TORII_OK);
    if (torii_team_rank(team) == 1) {
      void* memory = nullptr;
      for (std::size_t bytes = std::size_t{256} << 20; bytes >= 64; bytes /= 2) {
        while (torii_allocate(context, bytes, &memory) == TORII_OK) {
        }
      }
    }
    ASSERT_EQ(torii_barrier(team), TORII_OK);
    // The other rank may still look for the barrier's last message, and would find a failure instead.
    if (torii_team_rank(team) == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    for (int& one : data) ASSERT_EQ(torii_allreduce(team, &one, &one, 1, TORII_I32, TORII_SUM), TORII_OK);
    EXPECT_EQ(torii_group_end(team), TORII_NO_RESOURCE);
    EXPECT_NE(std::string(torii_last_error()).find("rank 1 has no 64 bytes for calls of a group"), std::string::npos)
        << torii_last_error();
  });
}

/// Of calls that run as one, the shortest deadline holds; those without one have the team's, which is 20 s.
TEST(FailedGroup, HasTheShortestDeadlineOfItsCalls) {
  std::atomic<bool> has_ended = false;
  run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
    ASSERT_EQ(torii_barrier(team), TORII_OK);
    if (torii_team_rank(team) == 1) {
      while (!has_ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(torii_barrier(team), TORII_TIMEOUT);
      return;
    }
    int data[3] = {};
    const double seconds[3] = {100, 0.3, 0};
    const auto begun = std::chrono::steady_clock::now();
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    for (std::size_t i = 0; i < 3; ++i) {
      torii_call call = make_call(TORII_ALLREDUCE, &data[i], &data[i], 1, TORII_I32);
      call.timeout_seconds = seconds[i];
      ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
    }
    EXPECT_EQ(torii_group_end(team), TORII_TIMEOUT);
    has_ended = true;
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(15)) << "the team's is 20 s";
    EXPECT_NE(std::string(torii_last_error()).find("no progress for 300 ms"), std::string::npos) << torii_last_error();
  });
}

TEST(FailedGroup, OfAPoisonedTeam) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    ASSERT_EQ(torii_barrier(team), TORII_OK);
    EXPECT_EQ(torii_team_abort(team, "enough"), TORII_OK);
    int data[2] = {1, 1};
    for (const torii_status expected : {TORII_ABORTED, TORII_POISONED}) {
      ASSERT_EQ(torii_group_begin(team), TORII_OK);
      for (int& one : data) ASSERT_EQ(torii_allreduce(team, &one, &one, 1, TORII_I32, TORII_SUM), TORII_OK);
      ASSERT_EQ(torii_barrier(team), TORII_OK);
      EXPECT_EQ(torii_group_end(team), expected) << torii_last_error();
      EXPECT_NE(std::string(torii_last_error()).find("enough"), std::string::npos) << torii_last_error();
    }
  });
}

}  // namespace
}  // namespace torii::tests
