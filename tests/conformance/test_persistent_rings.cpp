// SPDX-License-Identifier: Apache-2.0
// Persistent operations have standing rings of their own: many live at once, start in any order, and a start waits for
// nobody, not even for ranks that have not prepared the operation.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

ThreadTeam job_of(int ranks, const std::string& settings = "") {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "TIMEOUT=20\n" + settings;
  return options;
}

/// A persistent operation and its vectors. Its result tells from which calls it comes.
struct Operation {
  std::vector<std::int64_t> input;
  std::vector<std::int64_t> result;
  torii_collective collective = TORII_ALLREDUCE;
  int root = 0;
  torii_request* request = nullptr;

  Operation(torii_team* team, int number, std::size_t count) {
    constexpr torii_collective kKinds[] = {TORII_ALLREDUCE, TORII_BROADCAST, TORII_ALLTOALL, TORII_ALL_GATHER,
                                           TORII_REDUCE_SCATTER};
    const auto ranks = static_cast<std::size_t>(torii_team_ranks(team));
    collective = kKinds[static_cast<std::size_t>(number) % 5];
    root = number % static_cast<int>(ranks);
    input.assign(count * ranks, 0);
    result.assign(count * ranks, -1);
    torii_call call = make_call(collective, input.data(), result.data(), count, TORII_I64);
    call.root = root;
    EXPECT_EQ(torii_prepare(team, &call, &request), TORII_OK) << torii_last_error();
  }
  void start(torii_team* team, int turn) {
    input.assign(input.size(), 1000 * turn + torii_team_rank(team));
    if (collective == TORII_BROADCAST) result.assign(result.size(), 1000 * turn + torii_team_rank(team));
    ASSERT_EQ(torii_restart(request), TORII_OK) << torii_last_error();
  }
  void expect_end(torii_team* team, int turn) {
    ASSERT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
    const std::int64_t ranks = torii_team_ranks(team);
    const std::size_t count = result.size() / static_cast<std::size_t>(ranks);
    const std::int64_t sum = ranks * 1000 * turn + ranks * (ranks - 1) / 2;
    for (std::size_t at = 0; at < result.size(); ++at) {
      const auto block = static_cast<std::int64_t>(at / count);
      std::int64_t expected = sum;
      if (collective == TORII_BROADCAST) expected = 1000 * turn + (at < count ? root : torii_team_rank(team));
      if (collective == TORII_ALLTOALL || collective == TORII_ALL_GATHER) expected = 1000 * turn + block;
      if (collective == TORII_ALLREDUCE || collective == TORII_REDUCE_SCATTER) {
        if (at >= count) break;
      }
      ASSERT_EQ(result[at], expected) << torii_collective_name(collective) << " of " << count << ", element " << at;
    }
  }
};

/// Odd ranks start the operations in the opposite order, and wait for them in another one.
TEST(PersistentRings, ManyLiveAtOnceAndStartInAnyOrder) {
  run_as_threads(job_of(4), [](torii_context*, torii_team* team) {
    constexpr int kOperations = 600;
    const bool is_odd = torii_team_rank(team) % 2 != 0;
    std::vector<Operation> operations;
    operations.reserve(kOperations);
    for (int number = 0; number < kOperations; ++number) {
      operations.emplace_back(team, number, static_cast<std::size_t>(1 + number % 40 * 13));
    }
    for (int turn = 0; turn < 3; ++turn) {
      for (int at = 0; at < kOperations; ++at) {
        operations[static_cast<std::size_t>(is_odd ? kOperations - 1 - at : at)].start(team, turn);
      }
      for (int at = 0; at < kOperations; ++at) {
        operations[static_cast<std::size_t>(at * 7 % kOperations)].expect_end(team, turn);
      }
    }
    for (Operation& one : operations) EXPECT_EQ(torii_request_free(&one.request), TORII_OK) << torii_last_error();
  });
}

/// A channel serves one operation after another, whatever lengths and rings these need.
TEST(PersistentRings, AChannelServesOneOperationAfterAnother) {
  run_as_threads(job_of(3), [](torii_context*, torii_team* team) {
    for (int number = 0; number < 120; ++number) {
      const std::size_t count = number % 3 == 0 ? 1 : std::size_t{1} << (number % 17);
      Operation one(team, number, count);
      Operation other(team, number + 1, 1 + static_cast<std::size_t>(number));
      for (int turn = 0; turn < 3; ++turn) {
        one.start(team, turn);
        other.start(team, turn + 1);
        other.expect_end(team, turn + 1);
        one.expect_end(team, turn);
      }
      EXPECT_EQ(torii_request_free(&one.request), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_request_free(&other.request), TORII_OK) << torii_last_error();
    }
  });
}

/// Algorithms with several streams between two ranks.
TEST(PersistentRings, ForcedAlgorithmsHaveTheirRings) {
  for (const char* algorithm : {"trinaryx3", "bucket", "swing", "rabenseifner"}) {
    run_as_threads(job_of(4, "ALGORITHM=" + std::string(algorithm) + "\n"), [&](torii_context*, torii_team* team) {
      for (const std::size_t count : {1U, 100U, 60000U}) {
        Operation one(team, 0, count);
        for (int turn = 0; turn < 3; ++turn) {
          one.start(team, turn);
          one.expect_end(team, turn);
        }
        EXPECT_EQ(torii_request_free(&one.request), TORII_OK) << torii_last_error();
      }
    });
  }
}

/// The others prepare the operation only when rank 0 has started it.
TEST(PersistentRings, AStartWaitsForNobody) {
  run_as_threads(job_of(3), [](torii_context*, torii_team* team) {
    constexpr int kTag = 7;
    char sign = 1;
    const int rank = torii_team_rank(team);
    if (rank != 0) {
      ASSERT_EQ(torii_recv(team, &sign, 1, TORII_U8, 0, kTag, nullptr), TORII_OK);
    }
    Operation one(team, 0, 1000);
    one.start(team, 4);
    if (rank == 0) {
      int done = 1;
      ASSERT_EQ(torii_test(&one.request, &done), TORII_OK);
      EXPECT_EQ(done, 0);
      for (int peer = 1; peer < 3; ++peer) ASSERT_EQ(torii_send(team, &sign, 1, TORII_U8, peer, kTag), TORII_OK);
    }
    one.expect_end(team, 4);
    EXPECT_EQ(torii_request_free(&one.request), TORII_OK);
  });
}

/// Beyond the last channel operations are refused, on all ranks alike, and the team goes on.
TEST(PersistentRings, TooManyAreRefusedOnAllRanks) {
  run_as_threads(job_of(2), [](torii_context*, torii_team* team) {
    double value = 1;
    const torii_call call = make_call(TORII_ALLREDUCE, &value, &value, 1, TORII_F64);
    std::vector<torii_request*> requests;
    torii_request* one = nullptr;
    while (requests.size() < 5000 && torii_prepare(team, &call, &one) == TORII_OK) requests.push_back(one);
    EXPECT_EQ(requests.size(), 4096U);
    EXPECT_NE(std::string(torii_last_error()).find("4096 persistent operations"), std::string::npos)
        << torii_last_error();
    EXPECT_EQ(torii_prepare(team, &call, &one), TORII_NO_RESOURCE);
    EXPECT_EQ(torii_request_free(&requests.front()), TORII_OK);
    ASSERT_EQ(torii_prepare(team, &call, &requests.front()), TORII_OK) << torii_last_error();
    ASSERT_EQ(torii_restart(requests.front()), TORII_OK) << torii_last_error();
    ASSERT_EQ(torii_wait(&requests.front()), TORII_OK) << torii_last_error();
    EXPECT_EQ(value, 2);
    for (torii_request*& request : requests) EXPECT_EQ(torii_request_free(&request), TORII_OK);
  });
}

/// Ranks prepare operations whose rings differ in number and size: no rank stores where another one has other things.
TEST(PersistentRings, OtherRingsAreAMismatch) {
  run_as_threads(job_of(4), [](torii_context*, torii_team* team) {
    torii_team* part = nullptr;
    ASSERT_EQ(torii_team_split(team, 0, 0, nullptr, &part), TORII_OK) << torii_last_error();
    std::vector<double> values(100'000, 1);
    const bool is_odd = torii_team_rank(team) == 3;
    const torii_call call = is_odd ? make_call(TORII_ALLREDUCE, values.data(), values.data(), values.size(), TORII_F64)
                                   : make_call(TORII_BARRIER, nullptr, nullptr, 0, TORII_F64);
    torii_request* request = nullptr;
    torii_status status = torii_prepare(part, &call, &request);  // another rank may have found it by now
    if (status == TORII_OK) status = torii_restart(request);
    if (status == TORII_OK) status = torii_wait(&request);
    EXPECT_EQ(status, TORII_MISMATCH) << torii_last_error();
    EXPECT_NE(std::string(torii_last_error()).find("calls differ"), std::string::npos) << torii_last_error();
    EXPECT_EQ(torii_request_free(&request), TORII_OK);
    EXPECT_EQ(torii_team_destroy(part), TORII_OK);
  });
}

/// A rank that leaves without having prepared the operation is named.
TEST(PersistentRings, WhoHasNotPreparedIsNamed) {
  run_as_threads(job_of(3, "TIMEOUT=3\n"), [](torii_context*, torii_team* team) {
    torii_team* part = nullptr;
    ASSERT_EQ(torii_team_split(team, 0, 0, nullptr, &part), TORII_OK) << torii_last_error();
    if (torii_team_rank(team) == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    } else {
      Operation one(part, 0, 10);
      one.start(part, 1);
      EXPECT_NE(torii_wait(&one.request), TORII_OK);
      EXPECT_NE(std::string(torii_last_error()).find("rank 2"), std::string::npos) << torii_last_error();
      EXPECT_EQ(torii_request_free(&one.request), TORII_OK);
    }
    EXPECT_EQ(torii_team_destroy(part), TORII_OK);
  });
}

}  // namespace
}  // namespace torii::tests
