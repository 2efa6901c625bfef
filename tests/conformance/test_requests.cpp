// SPDX-License-Identifier: Apache-2.0
// Non-blocking and persistent operations: several in flight, waits in any order, teams used by threads of their own,
// and a rank that waits on one team while it moves another.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// A vector of its own for one allreduce, with a value that tells operations apart.
struct Operation {
  std::vector<std::int64_t> input;
  std::vector<std::int64_t> result;
  torii_request* request = nullptr;

  Operation(std::size_t count, int rank, int number) : input(count), result(count) { set(rank, number); }
  void set(int rank, int number) {
    for (std::size_t i = 0; i < input.size(); ++i) {
      input[i] = static_cast<std::int64_t>(i) + 1000 * number + 7 * rank;
      result[i] = -1;
    }
  }
  torii_call call() { return make_call(TORII_ALLREDUCE, input.data(), result.data(), input.size(), TORII_I64); }
  bool is_right(int ranks, int number) const {
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::int64_t right = ranks * (static_cast<std::int64_t>(i) + 1000 * number) + 7 * ranks * (ranks - 1) / 2;
      if (result[i] != right) return false;
    }
    return true;
  }
};

ThreadTeam team_of(int ranks, const std::string& more = "") {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=1G\nTIMEOUT=20\n" + more;
  return options;
}

constexpr std::size_t kCounts[] = {1, 5000, 17, 60'000, 300};

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
          ASSERT_EQ(torii_wait(one.request), TORII_OK) << torii_last_error();
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
      ASSERT_EQ(torii_test(one.request, &done), TORII_OK) << torii_last_error();
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
    ASSERT_EQ(torii_wait(slow.request), TORII_OK) << torii_last_error();
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
        ASSERT_EQ(torii_wait(one.request), TORII_OK) << torii_last_error();
        ASSERT_TRUE(one.is_right(3, 10 * round + number)) << "round " << round << ", operation " << number;
      }
    }
    for (Operation& one : operations) ASSERT_EQ(torii_request_free(one.request), TORII_OK) << torii_last_error();
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
      ASSERT_EQ(torii_wait(one.request), TORII_OK) << torii_last_error();
      ASSERT_TRUE(one.is_right(2, number));
      ASSERT_EQ(torii_request_free(one.request), TORII_OK) << torii_last_error();
    }
  });
}

/// Slots so large that few plans fit into a team's staging: plans that are put in place later empty it.
constexpr const char* kTightStaging = "SEGMENT=512K\nSLOTS=64\nCHANNELS=3\nALGORITHM=binomial";

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
        EXPECT_EQ(torii_wait(one.request), TORII_OK) << torii_last_error();
      }
      for (Operation& one : operations) EXPECT_EQ(torii_request_free(one.request), TORII_OK);
      EXPECT_EQ(torii_team_destroy(part), TORII_OK) << torii_last_error();
    }
    stop = true;
    reader.join();
  });
}

TEST(Requests, PersistentOnesMayEmptyTheStaging) {
  run_as_threads(team_of(3, kTightStaging), [](torii_context*, torii_team* team) {
    for (int number = 0; number < 6; ++number) {
      std::vector<std::int64_t> data(9, torii_team_rank(team) == number % 3 ? number : -1);
      const torii_call call = make_call(TORII_BROADCAST, nullptr, data.data(), 9, TORII_I64, TORII_SUM, number % 3);
      torii_request* request = nullptr;
      ASSERT_EQ(torii_prepare(team, &call, &request), TORII_OK) << "number " << number << ": " << torii_last_error();
      ASSERT_EQ(torii_restart(request), TORII_OK) << torii_last_error();
      ASSERT_EQ(torii_wait(request), TORII_OK) << torii_last_error();
      EXPECT_EQ(data, std::vector<std::int64_t>(9, number));
      ASSERT_EQ(torii_request_free(request), TORII_OK) << torii_last_error();
      // And one on a shared channel in between.
      data.assign(9, torii_team_rank(team) == 0 ? -number : 7);
      ASSERT_EQ(torii_broadcast(team, data.data(), 9, TORII_I64, 0), TORII_OK) << torii_last_error();
      EXPECT_EQ(data, std::vector<std::int64_t>(9, -number));
    }
  });
}

/// While a persistent operation holds its plan, the staging cannot be emptied; the call that would need it says so.
TEST(Requests, PersistentOnesThatHoldTheStagingAreNamed) {
  run_as_threads(team_of(2, kTightStaging), [](torii_context*, torii_team* team) {
    std::vector<std::int64_t> data(9);
    torii_status status = TORII_OK;
    std::vector<torii_request*> held;
    for (int number = 0; number < 8 && status == TORII_OK; ++number) {
      const torii_call call = make_call(TORII_BROADCAST, nullptr, data.data(), 9, TORII_I64, TORII_SUM, number % 2);
      torii_request* request = nullptr;
      status = torii_prepare(team, &call, &request);
      if (status == TORII_OK) held.push_back(request);
    }
    EXPECT_EQ(status, TORII_NO_RESOURCE);
    EXPECT_NE(std::string(torii_last_error()).find("persistent operations hold"), std::string::npos)
        << torii_last_error();
    EXPECT_GE(held.size(), 1U);
    for (torii_request* request : held) EXPECT_EQ(torii_request_free(request), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_barrier(team), TORII_OK) << "the team is as it was: " << torii_last_error();
  });
}

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
        ASSERT_EQ(torii_wait(b.request), TORII_OK) << torii_last_error();
        ASSERT_EQ(torii_wait(a.request), TORII_OK) << torii_last_error();
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
    ASSERT_EQ(torii_test(operation.request, &done), TORII_OK) << torii_last_error();
    done_ranks += done;
    if (done == 0) {
      ASSERT_EQ(torii_wait(operation.request), TORII_OK) << torii_last_error();
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
          ASSERT_EQ(torii_wait(on_a.request), TORII_OK) << torii_last_error();
        }
        ASSERT_EQ(torii_barrier(b), TORII_OK) << torii_last_error();
        if (rank == 0) {
          ASSERT_EQ(torii_wait(on_a.request), TORII_OK) << torii_last_error();
        }
        EXPECT_TRUE(on_a.is_right(2, round));
      }
      EXPECT_EQ(torii_team_destroy(b), TORII_OK) << torii_last_error();
    });
  }
}

/// The same while B empties its staging for plans that no longer fit: that waits for all ranks, too. Its slots are so
/// large that few plans fit.
TEST(Teams, AWaitForStagingMovesTheOther) {
  run_as_threads(team_of(2, "SLOTS=64\nCHANNELS=3\nALGORITHM=binomial"), [](torii_context*, torii_team* a) {
    torii_team* const b = twin_of(a, 512 * 1024);
    ASSERT_NE(b, nullptr);
    const int rank = torii_team_rank(a);
    for (int round = 0; round < 6; ++round) {
      Operation on_a(200'000, rank, round);
      const torii_call call = on_a.call();
      ASSERT_EQ(torii_start(a, &call, &on_a.request), TORII_OK) << torii_last_error();
      if (rank == 1) {
        ASSERT_EQ(torii_wait(on_a.request), TORII_OK) << torii_last_error();
      }
      for (int root = 0; root < 2; ++root) {
        std::vector<std::int64_t> data(9, 5 * round + root);
        ASSERT_EQ(torii_broadcast(b, data.data(), data.size(), TORII_I64, root), TORII_OK) << torii_last_error();
      }
      if (rank == 0) {
        ASSERT_EQ(torii_wait(on_a.request), TORII_OK) << torii_last_error();
      }
      EXPECT_TRUE(on_a.is_right(2, round));
    }
    EXPECT_EQ(torii_team_destroy(b), TORII_OK) << torii_last_error();
  });
}

/// Random calls, most of them like the one before, so that they take the short way; ranks that have nothing to wait for
/// run ahead until all slots are full. All ranks draw the same calls; each dawdles by itself.
void repeat_calls(torii_team* team, unsigned seed) {
  constexpr torii_collective kKinds[] = {TORII_BROADCAST, TORII_REDUCE, TORII_ALLREDUCE, TORII_BARRIER};
  constexpr std::size_t kLengths[] = {1, 7, 300};  // in the signal's line, behind it; short slots and long ones
  const int rank = torii_team_rank(team), ranks = torii_team_ranks(team);
  std::mt19937 common(seed), own(seed + static_cast<unsigned>(rank) + 1);
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
      ASSERT_EQ(torii_wait(one.request), TORII_OK) << torii_last_error();
    } else {
      ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
    }
    const bool has_sum = call.collective == TORII_ALLREDUCE || (call.collective == TORII_REDUCE && rank == call.root);
    EXPECT_TRUE(!has_sum || one.is_right(ranks, number)) << "seed " << seed << ", call " << number;
    if (!is_broadcast || rank == call.root) continue;
    EXPECT_EQ(one.result.back(), static_cast<std::int64_t>(call.count) - 1 + 1000 * number + 7 * call.root)
        << "seed " << seed << ", call " << number;
  }
}

TEST(RepeatedCalls, AreRightHoweverFarARankRunsAhead) {
  unsigned seed = 1;
  for (const char* settings : {"SLOTS=3\nCHANNELS=1", "SLOTS=4\nCHANNELS=2", "SLOTS=16\nCHANNELS=2"}) {
    run_as_threads(team_of(3, settings), [seed](torii_context*, torii_team* team) { repeat_calls(team, seed); });
    ++seed;
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
        for (int i = 0; i < 40 && done == 0 && status == TORII_OK; ++i) status = torii_test(request, &done);
      }
      usleep(25'000);
    }
    EXPECT_EQ(status, TORII_OK) << torii_last_error();
  });
}

}  // namespace
}  // namespace torii::tests
