// SPDX-License-Identifier: Apache-2.0
// Members that have destroyed the team, and operations that are in no order with others: persistent ones, sends and
// receives. Who waits for such a member learns so before the deadline, and nobody else is disturbed.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

using namespace std::chrono_literals;

constexpr int kMembers = 3;

torii_team* team_to_leave(torii_team* team) {
  torii_team* part = nullptr;
  EXPECT_EQ(torii_team_split(team, 0, 0, nullptr, &part), TORII_OK) << last_error();
  return part;
}

/// A persistent operation of one collective, and its vectors.
struct Persistent {
  std::vector<std::int64_t> input;
  std::vector<std::int64_t> result;
  torii_request* request = nullptr;

  Persistent(torii_team* team, torii_collective collective, std::size_t count, int root = 0)
      : input(count * kMembers, 1), result(count * kMembers, 0) {
    const torii_call call = make_call(collective, input.data(), result.data(), count, TORII_I64, TORII_SUM, root);
    EXPECT_EQ(torii_prepare(team, &call, &request), TORII_OK) << last_error();
  }
  torii_status run() {
    const torii_status status = torii_restart(request);
    return status == TORII_OK ? torii_wait(&request) : status;
  }
};

/// Expects the text about member 2, long before the deadline of 20 s.
void expect_named(torii_status status, std::chrono::steady_clock::time_point begin, const std::string& call) {
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(status, TORII_MISMATCH) << last_error();
  EXPECT_NE(last_error().find("rank 2 on host"), std::string::npos) << last_error();
  EXPECT_NE(last_error().find("destroyed the team before it came to " + call), std::string::npos) << last_error();
  EXPECT_LT(waited.count(), 5);
}

struct Case {
  torii_collective collective;
  std::size_t count;
};
/// Linear programs, lanes and segments, pairwise exchanges.
const Case kCases[] = {{TORII_ALLREDUCE, 1},  {TORII_ALLREDUCE, 100'000}, {TORII_BARRIER, 0},
                       {TORII_ALL_GATHER, 3}, {TORII_ALLTOALL, 1},        {TORII_ALLTOALL, 20'000}};

/// The cases mostly wait, so they do it side by side.
void side_by_side(const std::vector<std::function<void()>>& cases) {
  std::vector<std::thread> threads;
  for (const auto& one : cases) threads.emplace_back(one);
  for (std::thread& thread : threads) thread.join();
}

/// Member 2 starts the operation `starts` times and leaves, with its request or without it.
void leave_early(const Case& one, int starts, bool frees, const std::vector<int>& nodes) {
  ThreadTeam options = team_of(kMembers);
  options.nodes = nodes;
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    torii_team* const part = team_to_leave(team);
    Persistent persistent(part, one.collective, one.count);
    for (int start = 0; start < starts; ++start) ASSERT_EQ(persistent.run(), TORII_OK) << last_error();
    const bool leaves = torii_team_rank(team) == 2;
    if (leaves && frees) {
      EXPECT_EQ(torii_request_free(&persistent.request), TORII_OK);
    }
    if (leaves) {
      EXPECT_EQ(torii_team_destroy(part), TORII_OK) << last_error();
    } else {
      const auto begin = std::chrono::steady_clock::now();
      expect_named(persistent.run(), begin, torii_collective_name(one.collective));
    }
    EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
    EXPECT_EQ(torii_request_free(&persistent.request), TORII_OK) << last_error();
    if (!leaves) {
      EXPECT_EQ(torii_team_destroy(part), TORII_OK) << last_error();
    }
  });
}

TEST(Departed, IsNamedByPersistentOperationsThatWaitForIt) {
  for (const std::vector<int>& nodes : kPlaces) {
    std::vector<std::function<void()>> cases;
    for (std::size_t i = 0; i < std::size(kCases); ++i) {
      cases.emplace_back([=, &nodes] { leave_early(kCases[i], static_cast<int>(i % 3), i % 2 == 0, nodes); });
    }
    side_by_side(cases);
  }
}

/// A list of two requests is waited for, or looked at until one of them has failed. Returns that failure.
using ListWait = torii_status (*)(torii_request** list);
const ListWait kListWaits[] = {
    [](torii_request** list) {
      int index = -1;
      return torii_wait_any(list, 2, &index);
    },
    [](torii_request** list) { return torii_wait_all(list, 2); },
    [](torii_request** list) {
      int indices[2] = {};
      int done = 0;
      return torii_wait_some(list, 2, indices, nullptr, &done);
    },
    [](torii_request** list) {
      torii_status status = TORII_OK;
      for (int index = -1; index < 0 && status == TORII_OK;) status = torii_test_any(list, 2, &index);
      return status;
    },
    [](torii_request** list) {
      torii_status status = TORII_OK;
      for (int done = 0; done == 0 && status == TORII_OK;) status = torii_test_all(list, 2, &done);
      return status;
    },
    [](torii_request** list) {
      torii_status status = TORII_OK;
      for (int done = 0, i = 0; done == 0 && status == TORII_OK; i = 1 - i) {
        status = torii_test(&list[i], &done);
        std::this_thread::sleep_for(1ms);
      }
      return status;
    },
};

/// Member 0 waits for a receive from member 1, which lives, and for an operation that needs member 2.
void leave_a_list(ListWait wait, bool is_receive_first, const std::vector<int>& nodes) {
  ThreadTeam options = team_of(kMembers);
  options.nodes = nodes;
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    torii_team* const part = team_to_leave(team);
    const int rank = torii_team_rank(team);
    Persistent persistent(part, TORII_BROADCAST, 1, 2);
    if (rank == 0) {
      std::int64_t never = 0;
      torii_request* receive = nullptr;
      EXPECT_EQ(torii_start_recv(part, &never, 1, TORII_I64, 1, 7, nullptr, &receive), TORII_OK) << last_error();
      EXPECT_EQ(torii_restart(persistent.request), TORII_OK) << last_error();
      torii_request* list[] = {persistent.request, persistent.request};
      list[is_receive_first ? 0 : 1] = receive;
      const auto begin = std::chrono::steady_clock::now();
      expect_named(wait(list), begin, "broadcast");
      for (torii_request*& one : list) (void)torii_wait(&one);
    }
    if (rank != 2) {
      EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
    }
    EXPECT_EQ(torii_request_free(&persistent.request), TORII_OK) << last_error();
    EXPECT_EQ(torii_team_destroy(part), TORII_OK) << last_error();
    if (rank == 2) {
      EXPECT_EQ(torii_barrier(team), TORII_OK) << last_error();
    }
  });
}

TEST(Departed, IsNamedByListsOfRequests) {
  for (const std::vector<int>& nodes : kPlaces) {
    std::vector<std::function<void()>> cases;
    for (const ListWait wait : kListWaits) {
      for (const bool is_first : {false, true}) {
        cases.emplace_back([=, &nodes] { leave_a_list(wait, is_first, nodes); });
      }
    }
    side_by_side(cases);
  }
}

/// Member 1 has done its part of a reduce and is gone when member 2 comes. Where its records would tell of that reduce
/// they tell of a later operation with a lower number.
void leave_in_time(std::size_t count, const std::vector<int>& nodes) {
  constexpr std::size_t kOperations = 18;
  ThreadTeam options = team_of(kMembers);
  options.nodes = nodes;
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    torii_team* const part = team_to_leave(team);
    const int rank = torii_team_rank(team);
    // Nobody waits for anybody in the others but for their root, which is member 1.
    std::vector<Persistent> all;
    for (std::size_t i = 1; i < kOperations; ++i) all.emplace_back(part, TORII_BROADCAST, 1, 1);
    Persistent& watched = all.emplace_back(part, TORII_REDUCE, count);
    for (Persistent& one : all) ASSERT_EQ(one.run(), TORII_OK) << last_error();
    if (rank == 2) std::this_thread::sleep_for(1200ms);
    EXPECT_EQ(watched.run(), TORII_OK) << last_error();
    if (rank == 0) {
      EXPECT_EQ(watched.result.front(), kMembers);
    }
    if (rank == 1) {
      EXPECT_EQ(all[1].run(), TORII_OK) << last_error();
    }
    for (Persistent& one : all) EXPECT_EQ(torii_request_free(&one.request), TORII_OK) << last_error();
    EXPECT_EQ(torii_team_destroy(part), TORII_OK) << last_error();
  });
}

TEST(Departed, IsNotNamedWhereItDidItsPart) {
  std::vector<std::function<void()>> cases;
  for (const std::vector<int>& nodes : kPlaces) {
    for (const std::size_t count : {1, 50'000}) cases.emplace_back([=, &nodes] { leave_in_time(count, nodes); });
  }
  side_by_side(cases);
}

void leave_before_message(bool sends, const std::vector<int>& nodes) {
  ThreadTeam options = team_of(kMembers);
  options.nodes = nodes;
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    torii_team* const part = team_to_leave(team);
    std::vector<std::int64_t> data(1 << 17);
    if (torii_team_rank(team) == 0) {
      const auto begin = std::chrono::steady_clock::now();
      expect_named(sends ? torii_send(part, data.data(), data.size(), TORII_I64, 2, 5)
                         : torii_recv(part, data.data(), data.size(), TORII_I64, 2, 5, nullptr),
                   begin, sends ? "send of 131072" : "receive of up to 131072");
    }
    EXPECT_EQ(torii_team_destroy(part), TORII_OK) << last_error();
  });
}

TEST(Departed, IsNamedByReceivesAndSends) {
  std::vector<std::function<void()>> cases;
  for (const std::vector<int>& nodes : kPlaces) {
    for (const bool sends : {false, true}) cases.emplace_back([=, &nodes] { leave_before_message(sends, nodes); });
  }
  side_by_side(cases);
}

/// What it sent before is still received.
TEST(Departed, HasSentBefore) {
  for (const std::vector<int>& nodes : kPlaces) {
    ThreadTeam options = team_of(kMembers);
    options.nodes = nodes;
    run_as_threads(options, [](torii_context*, torii_team* team) {
      torii_team* const part = team_to_leave(team);
      const int rank = torii_team_rank(team);
      std::int64_t value = rank;
      if (rank == 2) {
        EXPECT_EQ(torii_send(part, &value, 1, TORII_I64, 0, 5), TORII_OK) << last_error();
      }
      if (rank == 0) {
        std::this_thread::sleep_for(700ms);
        EXPECT_EQ(torii_recv(part, &value, 1, TORII_I64, 2, 5, nullptr), TORII_OK) << last_error();
        EXPECT_EQ(value, 2);
      }
      EXPECT_EQ(torii_team_destroy(part), TORII_OK) << last_error();
    });
  }
}

}  // namespace
}  // namespace torii::tests
