// SPDX-License-Identifier: Apache-2.0
// Events by time, against a stable sort.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/test_run.hpp"
#include "transports/simulated/agenda.hpp"

namespace torii::simulated {
namespace {

/// Times below `times`: few of them make long lists, many of them share places among the recent ones.
void compare_with_sort(std::uint64_t seed, std::int64_t times, int events) {
  std::mt19937_64 random(seed);
  Agenda<int> agenda;
  std::vector<std::pair<Time, int>> sorted;
  for (int event = 0; event < events; ++event) {
    const auto time = static_cast<Time>(random() % static_cast<std::uint64_t>(times));
    agenda.add(time, event);
    sorted.emplace_back(time, event);
  }
  std::ranges::stable_sort(sorted, {}, &std::pair<Time, int>::first);
  std::size_t at = 0;
  while (!agenda.empty()) {
    const Time time = agenda.time();
    std::vector<int> due;
    agenda.take(due);
    for (const int event : due) {
      ASSERT_LT(at, sorted.size());
      EXPECT_EQ(sorted[at], std::pair(time, event));
      ++at;
    }
  }
  EXPECT_EQ(at, sorted.size());
}

TEST(Agenda, EventsOfOneInstantLeaveInTheOrderOfTheirMaking) {
  for (const tests::Seed& seed : tests::seeds_of("simulated_test", 1)) {
    SCOPED_TRACE(seed);
    for (const std::int64_t times : {1, 3, 2000, 1'000'000'000}) compare_with_sort(seed.value, times, 20000);
  }
}

TEST(Agenda, EventsMadeAtTheInstantThatHasBegunComeAfterIt) {
  Agenda<int> agenda;
  std::vector<int> due;
  for (int event = 0; event < 40; ++event) agenda.add(5, event);
  agenda.take(due);
  EXPECT_EQ(due.size(), 40U);
  EXPECT_TRUE(agenda.empty());
  agenda.add(5, 40);
  agenda.add(4, 41);
  EXPECT_EQ(agenda.time(), 4);
  agenda.take(due);
  EXPECT_EQ(agenda.time(), 5);
  agenda.take(due);
  EXPECT_EQ(due.back(), 40);
}

}  // namespace
}  // namespace torii::simulated
