// SPDX-License-Identifier: Apache-2.0
// torii_context_counters: what first calls cost, and that repeated ones cost none of it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

torii_counters counters_of(torii_context* context) {
  torii_counters counters{};
  counters.size = sizeof(counters);
  EXPECT_EQ(torii_context_counters(context, &counters), TORII_OK) << torii_last_error();
  return counters;
}

void sum(torii_team* team, std::size_t count, int times) {
  const std::vector<float> input(count, 1.0F);
  std::vector<float> result(count);
  for (int i = 0; i < times; ++i) {
    ASSERT_EQ(torii_allreduce(team, input.data(), result.data(), count, TORII_F32, TORII_SUM), TORII_OK)
        << torii_last_error();
  }
  EXPECT_EQ(result[count - 1], static_cast<float>(torii_team_ranks(team)));
}

ThreadTeam two_ranks(const char* settings) {
  ThreadTeam ranks;
  ranks.ranks = 2;
  ranks.settings = settings;
  return ranks;
}

TEST(Counters, ARepeatedCallAddsNothing) {
  run_as_threads(two_ranks("TIMEOUT=20"), [](torii_context* context, torii_team* team) {
    const torii_counters begin = counters_of(context);
    sum(team, 100, 1);
    const torii_counters first = counters_of(context);
    EXPECT_EQ(first.call_plans, begin.call_plans + 1);
    EXPECT_EQ(first.installed_plans, begin.installed_plans + 1);
    EXPECT_GT(first.staging_bytes, begin.staging_bytes);
    sum(team, 100, 8);  // on every channel
    const torii_counters warm = counters_of(context);
    sum(team, 100, 100);
    const torii_counters end = counters_of(context);
    EXPECT_EQ(end.call_plans, first.call_plans);
    EXPECT_EQ(end.installed_plans, warm.installed_plans);
    EXPECT_EQ(end.staging_bytes, warm.staging_bytes);
    for (std::size_t count = 90; count < 110; ++count) sum(team, count, 1);
    EXPECT_EQ(counters_of(context).call_plans, end.call_plans) << "lengths of the same class";
    ASSERT_EQ(torii_barrier(team), TORII_OK);
    EXPECT_EQ(counters_of(context).call_plans, end.call_plans + 1) << "another collective";
  });
}

TEST(Counters, MessagesAreColdUntilTheWayOfStoringIsKnown) {
  run_as_threads(two_ranks("TIMEOUT=20"), [](torii_context* context, torii_team* team) {
    sum(team, 16384, 1);
    EXPECT_GT(counters_of(context).cold_messages, 0U);
    sum(team, 16384, 400);
    const torii_counters warm = counters_of(context);
    sum(team, 16384, 50);
    EXPECT_EQ(counters_of(context).cold_messages, warm.cold_messages);
  });
}

TEST(Counters, SleepsAreCounted) {
  run_as_threads(two_ranks("TIMEOUT=20\nWAIT=sleep"), [](torii_context* context, torii_team* team) {
    if (torii_team_rank(team) == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    sum(team, 100, 1);
    if (torii_team_rank(team) == 0) {
      EXPECT_GT(counters_of(context).sleeps, 0U);
    }
  });
}

/// A program compiled against a library that had fewer counters.
TEST(Counters, AShorterStructIsFilledAsFarAsItGoes) {
  run_as_threads(two_ranks("TIMEOUT=20"), [](torii_context* context, torii_team* team) {
    sum(team, 100, 1);
    torii_counters counters;
    std::memset(&counters, 0xa5, sizeof(counters));
    counters.size = offsetof(torii_counters, installed_plans);
    ASSERT_EQ(torii_context_counters(context, &counters), TORII_OK) << torii_last_error();
    EXPECT_LT(counters.call_plans, 100U);
    EXPECT_EQ(counters.installed_plans, 0xa5a5a5a5a5a5a5a5U);
  });
}

}  // namespace
}  // namespace torii::tests
