// SPDX-License-Identifier: Apache-2.0
// Ranks of a team on standing rings whose calls differ, and who run on until one of them has to wait: then the first
// difference is named, if both still have its record. No rank gets data of another call.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

ThreadTeam apart(int ranks, const std::string& settings = "") {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "CHANNELS=1\nTIMEOUT=20\n" + settings;
  return options;
}

ThreadTeam ranks_of(int ranks) {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "TIMEOUT=20";
  return options;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// An alltoallv in which this rank sends `sent` bytes to `receiver` and nothing else, and takes `taken` from rank 0.
torii_status send_bytes(torii_team* team, int receiver, std::size_t sent, std::size_t taken) {
  const auto ranks = static_cast<std::size_t>(torii_team_ranks(team));
  std::vector<std::size_t> out(ranks, 0);
  std::vector<std::size_t> in(ranks, 0);
  out[static_cast<std::size_t>(receiver)] = sent;
  in[0] = taken;
  const std::vector<std::byte> input(sent + 1);
  std::vector<std::byte> result(taken + 1);
  return torii_alltoallv(team, input.data(), out.data(), nullptr, result.data(), in.data(), nullptr, TORII_U8);
}

TEST(CallsApart, ABroadcastsRootNeedsNobody) {
  run_as_threads(apart(2), [](torii_context*, torii_team* team) {
    std::vector<std::int32_t> values(4, 5);
    if (torii_team_rank(team) == 0) {
      EXPECT_EQ(torii_broadcast(team, values.data(), values.size(), TORII_I32, 0), TORII_OK) << torii_last_error();
    }
    // The other rank makes its first call only after that: by a message that no team carries.
    EXPECT_EQ(torii_team_rank(team) == 0 ? torii_send(team, values.data(), 4, TORII_I32, 1, 0)
                                         : torii_recv(team, values.data(), 4, TORII_I32, 0, 0, nullptr),
              TORII_OK);
    if (torii_team_rank(team) == 1) {
      EXPECT_EQ(torii_broadcast(team, values.data(), values.size(), TORII_I32, 0), TORII_OK) << torii_last_error();
    }
    EXPECT_EQ(values, std::vector<std::int32_t>(4, 5));
  });
}

/// Each is the root of its own broadcasts, so none waits. The counts tell which call of many is named.
TEST(CallsApart, TheFirstOfManyDifferentCallsIsNamed) {
  for (const std::size_t before : {0, 3}) {
    run_as_threads(apart(2), [&](torii_context*, torii_team* team) {
      const int rank = torii_team_rank(team);
      std::vector<std::int32_t> values(200);
      for (std::size_t call = 0; call < before; ++call) {
        ASSERT_EQ(torii_broadcast(team, values.data(), 1, TORII_I32, 0), TORII_OK) << torii_last_error();
      }
      for (std::size_t call = 0; call < 50; ++call) {
        ASSERT_EQ(torii_broadcast(team, values.data(), 100 + call, TORII_I32, rank), TORII_OK) << torii_last_error();
      }
      EXPECT_EQ(torii_barrier(team), TORII_MISMATCH);
      const std::string text = torii_last_error();
      EXPECT_TRUE(says(text, "rank 0 calls broadcast of 100 x i32, root 0")) << text;
      EXPECT_TRUE(says(text, "rank 1 calls broadcast of 100 x i32, root 1")) << text;
    });
  }
}

/// No wrong element arrives, although the messages of the second broadcast have the places of the first one's.
TEST(CallsApart, ACallThatOneRankLeavesOutGivesNobodyOtherData) {
  run_as_threads(apart(3), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    torii_status status = TORII_OK;
    for (std::int64_t call = 0; call < 40 && status == TORII_OK; ++call) {
      if (call == 10 && rank == 2) continue;
      std::vector<std::int64_t> values(static_cast<std::size_t>(call) + 5, rank == 0 ? call : -1);
      status = torii_broadcast(team, values.data(), values.size(), TORII_I64, 0);
      if (status == TORII_OK) {
        EXPECT_EQ(values, std::vector<std::int64_t>(values.size(), call));
      }
    }
    if (status == TORII_OK) status = torii_barrier(team);
    EXPECT_EQ(status, TORII_MISMATCH) << torii_last_error();
  });
}

/// The numbers of the ring from rank 0 to rank 1 then differ between its ends, whatever the calls after it are.
TEST(CallsApart, ABlockThatWasNotExpectedIsNamedByAnotherCollective) {
  for (const std::size_t bytes : {8, 3000}) {
    for (const std::size_t count : {1, 20, 5000}) {
      run_as_threads(apart(2), [&](torii_context*, torii_team* team) {
        std::vector<std::int64_t> values(count);
        const bool is_first = torii_team_rank(team) == 0;
        ASSERT_EQ(send_bytes(team, 1, is_first ? bytes : 0, 0), TORII_OK) << torii_last_error();
        torii_status status = torii_broadcast(team, values.data(), values.size(), TORII_I64, 0);
        if (status == TORII_OK) status = torii_barrier(team);
        EXPECT_EQ(status, TORII_MISMATCH);
        const std::string text = torii_last_error();
        EXPECT_TRUE(says(text, "has " + std::to_string(bytes) + " bytes for rank 1")) << text;
        EXPECT_TRUE(says(text, "which has 0: unequal lengths")) << text;
        EXPECT_TRUE(says(text, "during a call before this broadcast")) << text;
      });
    }
  }
}

/// Rank 1's first call is another one. Rank 0 goes on until all channels' rings are full, or for ever by calls of no
/// elements: then no record reaches back to the first difference.
TEST(CallsApart, ADifferenceThatNoRecordReachesIsFound) {
  for (const std::string channels : {"2", "4", "8"}) {
    for (const bool is_empty : {false, true}) {
      run_as_threads(apart(2, "CHANNELS=" + channels + "\n"), [&](torii_context*, torii_team* team) {
        std::int32_t value = 1;
        torii_status status = TORII_OK;
        if (torii_team_rank(team) == 1) {
          status = torii_allreduce(team, &value, &value, 1, TORII_I32, TORII_SUM);
        }
        for (int call = 0; call < 700 && status == TORII_OK; ++call) {
          status = torii_broadcast(team, &value, is_empty ? 0 : 1, TORII_I32, 0);
        }
        if (status == TORII_OK) status = torii_barrier(team);
        EXPECT_EQ(status, TORII_MISMATCH) << torii_last_error();
        EXPECT_TRUE(says(torii_last_error(), "calls differ: ")) << torii_last_error();
      });
    }
  }
}

/// The records of calls reach back to it no more, and in another collective its length is not known either.
TEST(CallsApart, ABlockThatWasNotExpectedLongAgoIsFound) {
  run_as_threads(apart(3), [](torii_context*, torii_team* team) {
    ASSERT_EQ(send_bytes(team, 1, torii_team_rank(team) == 0 ? 8 : 0, 0), TORII_OK) << torii_last_error();
    std::int64_t all[3] = {};
    std::int64_t value = 0;
    for (int call = 0; call < 300; ++call) {
      ASSERT_EQ(torii_scatter(team, all, &value, 1, TORII_I64, 2), TORII_OK) << torii_last_error();
    }
    torii_status status = torii_broadcast(team, &value, 1, TORII_I64, 0);
    if (status == TORII_OK) status = torii_barrier(team);
    EXPECT_EQ(status, TORII_MISMATCH);
    EXPECT_TRUE(says(torii_last_error(), "calls differ: the messages from rank 0")) << torii_last_error();
  });
}

/// Rank 1 waits behind a block that it did not expect; rank 0 is in another call with unequal blocks by then.
TEST(CallsApart, ALaterCallWithUnequalBlocksHidesNoBlock) {
  run_as_threads(apart(2), [](torii_context*, torii_team* team) {
    const bool is_first = torii_team_rank(team) == 0;
    ASSERT_EQ(send_bytes(team, 1, is_first ? 8 : 0, 0), TORII_OK) << torii_last_error();
    std::int64_t value = 1;
    torii_status status = torii_broadcast(team, &value, 1, TORII_I64, 0);
    if (status == TORII_OK) status = send_bytes(team, 1, is_first ? 8 : 0, is_first ? 0 : 8);
    if (status == TORII_OK) status = torii_barrier(team);
    EXPECT_EQ(status, TORII_MISMATCH);
    EXPECT_TRUE(says(torii_last_error(), "rank 0 on host")) << torii_last_error();
    EXPECT_TRUE(says(torii_last_error(), "has 8 bytes for rank 1")) << torii_last_error();
  });
}

/// Rank 1 expects 8 bytes. Rank 0 gives none and goes on, so the message that comes belongs to a later call.
TEST(CallsApart, AMissingBlockIsNoneThatWasNotExpected) {
  for (const std::size_t count : {1, 4, 20}) {
    run_as_threads(apart(2), [&](torii_context*, torii_team* team) {
      std::vector<std::int64_t> values(count);
      torii_status status = send_bytes(team, 1, 0, torii_team_rank(team) == 1 ? 8 : 0);
      if (status == TORII_OK) status = torii_broadcast(team, values.data(), values.size(), TORII_I64, 0);
      if (status == TORII_OK) status = torii_barrier(team);
      EXPECT_EQ(status, TORII_MISMATCH);
      EXPECT_TRUE(says(torii_last_error(), "has 0 bytes for rank 1 on host")) << torii_last_error();
      EXPECT_TRUE(says(torii_last_error(), "which has 8: unequal lengths")) << torii_last_error();
    });
  }
}

/// Rank 1, which did not expect the block, waits for no message of rank 0. Rank 0 waits for its outbox at last.
TEST(CallsApart, ABlockThatNobodyTakesFillsTheOutboxAndIsNamed) {
  for (const bool starts : {false, true}) {  // so that rank 1 has always a call in flight
    run_as_threads(apart(3, "CROSS_MEMORY=off\n"), [&](torii_context*, torii_team* team) {
      const int rank = torii_team_rank(team);
      ASSERT_EQ(send_bytes(team, 1, rank == 0 ? 3000 : 0, 0), TORII_OK) << torii_last_error();
      std::vector<std::int64_t> input(2000, 1);
      std::vector<std::int64_t> result(2000);
      const torii_call reduce =
          make_call(TORII_REDUCE, input.data(), result.data(), input.size(), TORII_I64, TORII_SUM, 2);
      std::vector<torii_request*> requests(300);
      torii_status status = TORII_OK;
      for (std::size_t call = 0; call < requests.size() && status == TORII_OK; ++call) {
        status = starts && rank == 1 ? torii_start(team, &reduce, &requests[call]) : torii_run(team, &reduce);
      }
      for (torii_request*& one : requests) {
        const torii_status ended = one == nullptr ? TORII_OK : torii_wait(&one);
        if (status == TORII_OK) status = ended;
      }
      EXPECT_EQ(status, TORII_MISMATCH);
      const std::string text = torii_last_error();
      EXPECT_TRUE(says(text, "has sent rank 1")) << text;
      EXPECT_TRUE(says(text, "a block that it did not expect")) << text;
    });
  }
}

/// Calls of many shapes: each has a plan of its own or a new length, and most have another root.
torii_call call_of(int number, std::vector<std::int64_t>& input, std::vector<std::int64_t>& result, int ranks) {
  constexpr torii_collective kKinds[] = {TORII_BROADCAST, TORII_REDUCE, TORII_ALLREDUCE,
                                         TORII_SCATTER,   TORII_GATHER, TORII_ALLTOALL};
  constexpr std::size_t kCounts[] = {1, 3, 7, 100, 800, 3000};
  const auto of = static_cast<std::size_t>(number);
  const std::size_t count = kCounts[of / 6 % 6] + of / 36;
  input.assign(count * static_cast<std::size_t>(ranks), number);
  result.assign(input.size(), number);
  return make_call(kKinds[of % 6], input.data(), result.data(), count, TORII_I64, TORII_SUM, number % ranks);
}

/// Rank 0 starts many operations on a team and then enters a barrier on a part; the others do it the other way round.
TEST(CallsApart, AStartWaitsForNobody) {
  run_as_threads(ranks_of(4), [](torii_context*, torii_team* team) {
    constexpr std::size_t kCalls = 300;
    const int rank = torii_team_rank(team);
    torii_team* part = nullptr;
    ASSERT_EQ(torii_team_split(team, 0, 0, nullptr, &part), TORII_OK) << torii_last_error();
    if (rank != 0) {
      EXPECT_EQ(torii_barrier(part), TORII_OK) << torii_last_error();
    }
    std::vector<std::vector<std::int64_t>> inputs(kCalls);
    std::vector<std::vector<std::int64_t>> results(kCalls);
    std::vector<torii_request*> requests(kCalls);
    for (std::size_t at = 0; at < kCalls; ++at) {
      const torii_call call = call_of(static_cast<int>(at), inputs[at], results[at], 4);
      ASSERT_EQ(torii_start(team, &call, &requests[at]), TORII_OK) << torii_last_error();
    }
    if (rank == 0) {
      EXPECT_EQ(torii_barrier(part), TORII_OK) << torii_last_error();
    }
    for (torii_request*& one : requests) EXPECT_EQ(torii_wait(&one), TORII_OK) << torii_last_error();
    for (std::size_t at = 0; at < kCalls; ++at) {
      const auto number = static_cast<std::int64_t>(at);
      const bool sums = at % 6 == 2 || (at % 6 == 1 && rank == static_cast<int>(at % 4));
      EXPECT_EQ(results[at].front(), sums ? 4 * number : number) << at;
    }
    EXPECT_EQ(torii_team_destroy(part), TORII_OK);
  });
}

/// A persistent operation holds its plan. The calls beside it do not use up what plans take.
TEST(CallsApart, ATeamDoesNotGrowOldBesideAPersistentOperation) {
  run_as_threads(ranks_of(4), [](torii_context*, torii_team* team) {
    std::vector<double> values(16, 1);
    const torii_call sum = make_call(TORII_ALLREDUCE, values.data(), values.data(), values.size(), TORII_F64);
    torii_request* persistent = nullptr;
    ASSERT_EQ(torii_prepare(team, &sum, &persistent), TORII_OK) << torii_last_error();
    std::vector<std::int64_t> input;
    std::vector<std::int64_t> result;
    for (int number = 0; number < 2000; ++number) {
      const torii_call call = call_of(number, input, result, 4);
      ASSERT_EQ(torii_run(team, &call), TORII_OK) << number << ": " << torii_last_error();
    }
    values.assign(16, 1);
    EXPECT_EQ(torii_restart(persistent), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_wait(&persistent), TORII_OK) << torii_last_error();
    EXPECT_EQ(values, std::vector<double>(16, 4));
    EXPECT_EQ(torii_request_free(&persistent), TORII_OK);
  });
}

}  // namespace
}  // namespace torii::tests
