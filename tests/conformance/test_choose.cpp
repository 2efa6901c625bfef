// SPDX-License-Identifier: Apache-2.0
// torii_choose and torii_expect while helper threads move operations of the team that the caller has started, and while
// other callers ask too.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

constexpr int kRanks = 2;
/// The questions' lengths, each of another call than those that run.
constexpr std::size_t kCalls = 100;

void fill_ones(int, std::size_t, std::size_t count, void* out, void*) {
  std::int64_t* const values = static_cast<std::int64_t*>(out);
  for (std::size_t i = 0; i < count; ++i) values[i] = 1;
}

/// Asks for the call of `count` elements.
void ask(torii_team* team, std::size_t count) {
  const std::vector<std::int64_t> input(count);
  std::vector<std::int64_t> result(count);
  const torii_call call = make_call(TORII_ALLREDUCE, input.data(), result.data(), count, TORII_I64);
  EXPECT_NE(algorithm_of(team, call), "");
  std::int64_t expected = 0;
  EXPECT_EQ(torii_expect(team, &call, count - 1, 1, fill_ones, nullptr, &expected), TORII_OK) << torii_last_error();
  EXPECT_EQ(expected, kRanks);
}

void ask_while_helpers_move(const std::string& helpers) {
  ThreadTeam ranks;
  ranks.ranks = kRanks;
  ranks.settings = "ARENA=1G\nTIMEOUT=20\n" + helpers;
  run_as_threads(ranks, [](torii_context*, torii_team* team) {
    for (std::size_t round = 0; round < 20; ++round) {
      // Operations of several lengths end at different moments of the questions.
      const std::size_t count = 10 + 1000 * round;
      std::vector<std::int64_t> input(count, torii_team_rank(team));
      std::vector<std::int64_t> results[2] = {std::vector<std::int64_t>(count), std::vector<std::int64_t>(count)};
      torii_request* requests[2] = {};
      for (int i = 0; i < 2; ++i) {
        const torii_call call = make_call(TORII_ALLREDUCE, input.data(), results[i].data(), count, TORII_I64);
        ASSERT_EQ(torii_start(team, &call, &requests[i]), TORII_OK) << torii_last_error();
      }
      for (std::size_t length = 1; length <= kCalls; ++length) ask(team, length);
      for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(torii_wait(&requests[i]), TORII_OK) << torii_last_error();
        EXPECT_EQ(results[i], std::vector<std::int64_t>(count, kRanks * (kRanks - 1) / 2));
      }
    }
  });
}

/// More calls than a team keeps prepared: a plan must not go while another thread reads it.
TEST(Choose, WhileOtherCallersAsk) {
  ThreadTeam ranks;
  ranks.ranks = kRanks;
  ranks.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(ranks, [](torii_context*, torii_team* parent) {
    torii_team_options options = {};
    options.size = sizeof(options);
    options.many_callers = 1;
    torii_team* team = nullptr;
    ASSERT_EQ(torii_team_split(parent, 0, 0, &options, &team), TORII_OK) << torii_last_error();
    std::vector<std::thread> callers;
    for (std::size_t i = 0; i < 3; ++i) {
      callers.emplace_back([team, i] {
        for (std::size_t length = 1; length <= 2 * kCalls; ++length) ask(team, length + 37 * i);
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(torii_team_destroy(team), TORII_OK) << torii_last_error();
  });
}

TEST(Choose, WhileAHelperMovesOperations) { ask_while_helpers_move("HELPERS=1"); }
TEST(Choose, WhileHelpersMoveOperations) { ask_while_helpers_move("HELPERS=3"); }

}  // namespace
}  // namespace torii::tests
