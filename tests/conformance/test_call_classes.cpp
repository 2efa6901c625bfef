// SPDX-License-Identifier: Apache-2.0
// Calls whose lengths, types and roots change on one team: blocking ones, and several in flight, of which some ranks
// wait for each and others start ahead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "tests/conformance/combine.hpp"

namespace torii::tests {
namespace {

constexpr torii_collective kChanging[] = {TORII_BROADCAST,  TORII_REDUCE,         TORII_ALLREDUCE,
                                          TORII_ALL_GATHER, TORII_REDUCE_SCATTER, TORII_ALLTOALL,
                                          TORII_SCATTER,    TORII_GATHER,         TORII_SCAN};

Cell draw(std::mt19937& random, int ranks) {
  Cell drawn = {};
  drawn.collective = kChanging[random() % std::size(kChanging)];
  drawn.type = random() % 2 == 0 ? TORII_I32 : TORII_I64;
  drawn.op = random() % 4 == 0 ? TORII_MAX : TORII_SUM;
  const std::size_t power = std::size_t{1} << random() % 14;
  drawn.count = power + random() % power;
  drawn.root = static_cast<int>(random() % static_cast<unsigned>(ranks));
  return drawn;
}

/// A call in flight.
struct Started {
  CellCall call;
  torii_request* request = nullptr;
};

void end(Started& started) {
  ASSERT_EQ(torii_wait(&started.request), TORII_OK) << torii_last_error();
  started.call.expect_defined();
}

/// `ahead`: so many calls this rank has in flight at the most; 0: all calls block.
void run_calls(torii_team* team, unsigned seed, int calls, std::size_t ahead) {
  std::mt19937 random(seed);
  std::deque<Started> in_flight;
  for (int i = 0; i < calls && !testing::Test::HasFatalFailure(); ++i) {
    const Cell drawn = draw(random, torii_team_ranks(team));
    const Inputs inputs = {.seed = seed + static_cast<unsigned>(i)};
    if (drawn.type == TORII_I32 || ahead == 0) {
      const CellCall call(team, drawn, inputs);
      ASSERT_EQ(torii_run(team, &call.call()), TORII_OK) << torii_last_error();
      call.expect_defined("call " + std::to_string(i));
      continue;
    }
    Started& started = in_flight.emplace_back(CellCall(team, drawn, inputs));
    ASSERT_EQ(torii_start(team, &started.call.call(), &started.request), TORII_OK) << torii_last_error();
    if (in_flight.size() < ahead) continue;
    end(in_flight.front());
    in_flight.pop_front();
  }
  for (Started& started : in_flight) end(started);
}

TEST(CallClasses, CallsThatChangeAreRight) {
  std::vector<std::vector<int>> places = {{0, 0}, {0, 0, 0}, {0, 0, 0, 0}};
#if defined(TORII_TEST_LIBFABRIC)
  places.insert(places.end(), {{0, 1}, {0, 0, 1}});
#endif
  for (const std::vector<int>& nodes : places) {
    ThreadTeam options;
    options.ranks = static_cast<int>(nodes.size());
    if (nodes.back() != 0) options.nodes = nodes;
    options.settings = "ARENA=1G\nTIMEOUT=30";
    run_as_threads(options, [](torii_context* context, torii_team* team) {
      for (const unsigned seed : {1U, 2U}) run_calls(team, seed, 150, 0);
      // Every rank starts ahead as far as it likes.
      run_calls(team, 3, 200, 1 + static_cast<std::size_t>(torii_team_rank(team)) * 3);
      run_calls(team, 4, 200, torii_team_rank(team) == 0 ? 0 : 8);
      torii_counters counters = {};
      counters.size = sizeof(counters);
      ASSERT_EQ(torii_context_counters(context, &counters), TORII_OK);
      EXPECT_LT(counters.call_plans, 400U) << "700 calls";
    });
  }
}

/// Prepared operations of one class, restarted in any order, with other calls of the class between them.
TEST(CallClasses, PreparedOperationsOfAClassStayTheirOwn) {
  ThreadTeam options;
  options.ranks = 3;
  options.settings = "ARENA=1G\nTIMEOUT=30";
  run_as_threads(options, [](torii_context*, torii_team* team) {
    constexpr std::size_t kCounts[] = {100, 117, 150};
    std::vector<std::int64_t> inputs[3], results[3];
    torii_request* requests[3] = {};
    for (int i = 0; i < 3; ++i) {
      inputs[i].assign(kCounts[i], i + torii_team_rank(team));
      results[i].resize(kCounts[i]);
      const torii_call call = make_call(TORII_ALLREDUCE, inputs[i].data(), results[i].data(), kCounts[i], TORII_I64);
      ASSERT_EQ(torii_prepare(team, &call, &requests[i]), TORII_OK) << torii_last_error();
    }
    std::mt19937 random(5);
    for (int round = 0; round < 60; ++round) {
      const int first = static_cast<int>(random() % 3);
      const int second = (first + 1) % 3;
      for (const int i : {first, second}) {
        std::fill(results[i].begin(), results[i].end(), -1);
        ASSERT_EQ(torii_restart(requests[i]), TORII_OK) << torii_last_error();
      }
      std::vector<std::int64_t> vector(90 + random() % 80, 1), sum(vector.size());
      ASSERT_EQ(torii_allreduce(team, vector.data(), sum.data(), sum.size(), TORII_I64, TORII_SUM), TORII_OK);
      ASSERT_EQ(sum, std::vector<std::int64_t>(sum.size(), 3));
      for (const int i : {second, first}) {
        ASSERT_EQ(torii_wait(&requests[i]), TORII_OK) << torii_last_error();
        ASSERT_EQ(results[i], std::vector<std::int64_t>(kCounts[i], 3 * i + 3)) << round;
      }
    }
    for (torii_request*& request : requests) ASSERT_EQ(torii_request_free(&request), TORII_OK);
  });
}

}  // namespace
}  // namespace torii::tests
