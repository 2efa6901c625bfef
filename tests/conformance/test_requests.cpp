// SPDX-License-Identifier: Apache-2.0
// Non-blocking and persistent operations: several in flight, waits in any order, and calls that take the short way.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

TEST(Requests, MayBeWaitedForInAnyOrder) {
  for (const char* channels : {"CHANNELS=1", "CHANNELS=2", "CHANNELS=8"}) {
    run_as_threads(team_of(3, channels), [&](torii_context*, torii_team* team) {
      const int rank = torii_team_rank(team);
      std::mt19937 random(static_cast<unsigned>(rank));  // every rank waits in an order of its own
      for (int round = 0; round < 5; ++round) {
        std::vector<Operation> operations;
        for (int number = 0; number < 10; ++number) operations.emplace_back(kCounts[number % 5], rank, number);
        for (Operation& one : operations) {
          const torii_call call = one.call();
          ASSERT_EQ(torii_start(team, &call, &one.request), TORII_OK) << torii_last_error();
        }
        std::vector<int> order(operations.size());
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        for (const int number : order) {
          Operation& one = operations[static_cast<std::size_t>(number)];
          ASSERT_EQ(torii_wait(&one.request), TORII_OK) << torii_last_error();
          EXPECT_TRUE(one.is_right(3, number)) << channels << ", operation " << number;
        }
      }
    });
  }
}

TEST(Requests, EndWhenTestedOftenEnough) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    Operation one(100'000, torii_team_rank(team), 1);
    const torii_call call = one.call();
    ASSERT_EQ(torii_start(team, &call, &one.request), TORII_OK) << torii_last_error();
    int done = 0;
    while (done == 0) {
      ASSERT_EQ(torii_test(&one.request, &done), TORII_OK) << torii_last_error();
      std::this_thread::yield();
    }
    EXPECT_TRUE(one.is_right(2, 1));
  });
}

TEST(Requests, BlockingCallsMayPassWhileOthersAreInFlight) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    Operation slow(200'000, torii_team_rank(team), 1);
    const torii_call call = slow.call();
    ASSERT_EQ(torii_start(team, &call, &slow.request), TORII_OK) << torii_last_error();
    for (int number = 2; number < 10; ++number) {
      Operation quick(10, torii_team_rank(team), number);
      const torii_call other = quick.call();
      ASSERT_EQ(torii_run(team, &other), TORII_OK) << torii_last_error();
      EXPECT_TRUE(quick.is_right(2, number));
    }
    ASSERT_EQ(torii_wait(&slow.request), TORII_OK) << torii_last_error();
    EXPECT_TRUE(slow.is_right(2, 1));
  });
}

TEST(Requests, PersistentOnesStartInAnyOrder) {
  run_as_threads(team_of(3), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    std::vector<Operation> operations;
    for (int number = 0; number < 3; ++number) operations.emplace_back(kCounts[number + 1], rank, number);
    for (Operation& one : operations) {
      const torii_call call = one.call();
      ASSERT_EQ(torii_prepare(team, &call, &one.request), TORII_OK) << torii_last_error();
    }
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 3; ++i) {
        // Rank r starts with operation r: each has a channel of its own.
        const int number = (i + rank) % 3;
        Operation& one = operations[static_cast<std::size_t>(number)];
        one.set(rank, 10 * round + number);
        ASSERT_EQ(torii_restart(one.request), TORII_OK) << torii_last_error();
      }
      for (int number = 2; number >= 0; --number) {
        Operation& one = operations[static_cast<std::size_t>(number)];
        ASSERT_EQ(torii_wait(&one.request), TORII_OK) << torii_last_error();
        ASSERT_TRUE(one.is_right(3, 10 * round + number)) << "round " << round << ", operation " << number;
      }
    }
    for (Operation& one : operations) ASSERT_EQ(torii_request_free(&one.request), TORII_OK) << torii_last_error();
  });
}

TEST(Requests, PersistentOnesGiveTheirChannelBack) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    for (int number = 0; number < 200; ++number) {
      Operation one(static_cast<std::size_t>(1 + number), rank, number);
      const torii_call call = one.call();
      ASSERT_EQ(torii_prepare(team, &call, &one.request), TORII_OK)
          << "number " << number << ": " << torii_last_error();
      ASSERT_EQ(torii_restart(one.request), TORII_OK) << torii_last_error();
      ASSERT_EQ(torii_wait(&one.request), TORII_OK) << torii_last_error();
      ASSERT_TRUE(one.is_right(2, number));
      ASSERT_EQ(torii_request_free(&one.request), TORII_OK) << torii_last_error();
    }
  });
}

/// Persistent operations add channels while another thread asks what all channels have carried.
TEST(Requests, CountersMayBeReadFromAnotherThread) {
  constexpr int kOperations = 20;
  run_as_threads(team_of(2), [&](torii_context* context, torii_team* team) {
    std::atomic<bool> stop = false;
    std::thread reader([&] {
      std::uint64_t last[16] = {};
      while (!stop) {
        std::uint64_t bytes[16] = {};
        const int engines = torii_engine_bytes(context, bytes, 16);
        for (int engine = 0; engine < engines; ++engine) {
          EXPECT_GE(bytes[engine], last[engine]);
          last[engine] = bytes[engine];
        }
        EXPECT_GE(torii_most_in_flight(team), 0);
      }
    });
    for (int round = 0; round < 3; ++round) {
      // A team that ends meanwhile takes nothing away from the sums.
      torii_team* part = nullptr;
      EXPECT_EQ(torii_team_split(team, 0, torii_team_rank(team), nullptr, &part), TORII_OK) << torii_last_error();
      std::vector<Operation> operations;
      for (int number = 0; number < kOperations; ++number) operations.emplace_back(100, torii_team_rank(team), number);
      for (Operation& one : operations) {
        const torii_call call = one.call();
        EXPECT_EQ(torii_prepare(part, &call, &one.request), TORII_OK) << torii_last_error();
        EXPECT_EQ(torii_restart(one.request), TORII_OK) << torii_last_error();
        EXPECT_EQ(torii_wait(&one.request), TORII_OK) << torii_last_error();
      }
      for (Operation& one : operations) EXPECT_EQ(torii_request_free(&one.request), TORII_OK);
      EXPECT_EQ(torii_team_destroy(part), TORII_OK) << torii_last_error();
    }
    stop = true;
    reader.join();
  });
}

TEST(Requests, PersistentOnesWithLongSegments) {
  run_as_threads(team_of(3, "SEGMENT=512K\nSLOTS=64\nCHANNELS=3\nALGORITHM=binomial"), [](torii_context*,
                                                                                          torii_team* team) {
    for (int number = 0; number < 6; ++number) {
      std::vector<std::int64_t> data(9, torii_team_rank(team) == number % 3 ? number : -1);
      const torii_call call = make_call(TORII_BROADCAST, nullptr, data.data(), 9, TORII_I64, TORII_SUM, number % 3);
      torii_request* request = nullptr;
      ASSERT_EQ(torii_prepare(team, &call, &request), TORII_OK) << "number " << number << ": " << torii_last_error();
      ASSERT_EQ(torii_restart(request), TORII_OK) << torii_last_error();
      ASSERT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
      EXPECT_EQ(data, std::vector<std::int64_t>(9, number));
      ASSERT_EQ(torii_request_free(&request), TORII_OK) << torii_last_error();
      // And one on a shared channel in between.
      data.assign(9, torii_team_rank(team) == 0 ? -number : 7);
      ASSERT_EQ(torii_broadcast(team, data.data(), 9, TORII_I64, 0), TORII_OK) << torii_last_error();
      EXPECT_EQ(data, std::vector<std::int64_t>(9, -number));
    }
  });
}

/// Random calls, most of them like the one before, so that they take the short way; ranks that have nothing to wait for
/// run ahead until all slots are full. All ranks draw the same calls; each dawdles by itself.
void repeat_calls(torii_team* team, std::uint64_t seed) {
  constexpr torii_collective kKinds[] = {TORII_BROADCAST, TORII_REDUCE, TORII_ALLREDUCE, TORII_BARRIER};
  constexpr std::size_t kLengths[] = {1, 7, 300};  // in the signal's line, behind it; short slots and long ones
  const int rank = torii_team_rank(team), ranks = torii_team_ranks(team);
  std::mt19937_64 common(seed), own(seed + static_cast<unsigned>(rank) + 1);
  torii_call call = make_call(TORII_BROADCAST, nullptr, nullptr, 1, TORII_I64);
  for (int number = 0; number < 400; ++number) {
    if (common() % 16 == 0) call.collective = kKinds[common() % 4];
    if (common() % 16 == 0) call.count = kLengths[common() % 3];
    if (common() % 16 == 0) call.root = static_cast<int>(common() % static_cast<unsigned>(ranks));
    if (own() % 32 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 300));
    Operation one(call.count, rank, number);
    const bool is_broadcast = call.collective == TORII_BROADCAST;
    call.input = one.input.data();
    call.result = is_broadcast && rank == call.root ? one.input.data() : one.result.data();
    if (common() % 32 == 0) {
      ASSERT_EQ(torii_start(team, &call, &one.request), TORII_OK) << torii_last_error();
      ASSERT_EQ(torii_wait(&one.request), TORII_OK) << torii_last_error();
    } else {
      ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
    }
    const bool has_sum = call.collective == TORII_ALLREDUCE || (call.collective == TORII_REDUCE && rank == call.root);
    EXPECT_TRUE(!has_sum || one.is_right(ranks, number)) << "call " << number;
    if (!is_broadcast || rank == call.root) continue;
    EXPECT_EQ(one.result.back(), static_cast<std::int64_t>(call.count) - 1 + 1000 * number + 7 * call.root)
        << "call " << number;
  }
}

TEST(RepeatedCalls, AreRightHoweverFarARankRunsAhead) {
  for (const char* settings : {"SLOTS=3\nCHANNELS=1", "SLOTS=4\nCHANNELS=2", "SLOTS=16\nCHANNELS=2"}) {
    for (const Seed& seed : seeds_of("conformance_requests", 1)) {
      run_as_threads(team_of(3, settings), [&seed](torii_context*, torii_team* team) {
        SCOPED_TRACE(seed);
        repeat_calls(team, seed.value);
      });
    }
  }
}

}  // namespace
}  // namespace torii::tests
