// SPDX-License-Identifier: Apache-2.0
// A member that can not make the team of survivors, and dies: the others end in time, and alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr int kRefusingRanks = 4;
constexpr double kTimeoutS = 10;
/// The choice of survivors and of lost engines waits for 2 s at most.
constexpr double kLateS = 6;

struct Report {
  Outcome outcome;
  std::vector<std::string> ends;   ///< how the call ended, by rank: "status: text"
  std::vector<std::string> calls;  ///< how calls on the team of survivors ended
  double latest_s = 0;
};

Report run_refusing(int per_node, int chosen, int delay_us, int nth) {
  Report report;
  std::vector<std::string> environment = {"TORII_ARENA=512M", "TORII_TIMEOUT=" + std::to_string(kTimeoutS)};
  if (per_node != 0) environment.push_back("TORII_TEST_PER_NODE=" + std::to_string(per_node));
  report.outcome = run(
      {bin_dir() + "/torii-run", "-n", std::to_string(kRefusingRanks), "--timeout", "25", "--on-failure", "continue",
       "--", helper("refusing_rank"), std::to_string(chosen), std::to_string(delay_us), std::to_string(nth)},
      environment);
  const std::string& output = report.outcome.output;
  const std::regex line("rank [0-9]+ after ([0-9.]+) s: (survivors|calls): ([^\n]*)");
  for (auto at = std::sregex_iterator(output.begin(), output.end(), line); at != std::sregex_iterator(); ++at) {
    ((*at)[2] == "calls" ? report.calls : report.ends).push_back((*at)[3]);
    report.latest_s = std::max(report.latest_s, std::stod((*at)[1]));
  }
  return report;
}

/// A rank without memory is killed at a random moment of the call, or as soon as the call has told it so.
void refuse_at_random(const std::string& part, int per_node, int nth_least, int nth_most) {
  for (const Seed& seed : seeds_of("test_refusing/" + part, is_full() ? 200 : 4)) {
    if (::testing::Test::HasFailure()) return;
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    const int chosen = static_cast<int>(random() % kRefusingRanks);
    const int delay_us = seed.value % 3 == 0 ? 5'000'000 : static_cast<int>(random() % 3000);
    const int nth = nth_least + static_cast<int>(random() % static_cast<unsigned>(nth_most - nth_least + 1));
    const Report report = run_refusing(per_node, chosen, delay_us, nth);
    SCOPED_TRACE("rank " + std::to_string(chosen) + ", killed after " + std::to_string(delay_us) + " us, allocation " +
                 std::to_string(nth) + "\n" + report.outcome.output);
    EXPECT_EQ(report.ends.size(), std::size_t{kRefusingRanks - 1});
    EXPECT_EQ(std::set<std::string>(report.ends.begin(), report.ends.end()).size(), 1U);
    EXPECT_EQ(std::set<std::string>(report.calls.begin(), report.calls.end()).size(), report.calls.empty() ? 0U : 1U);
    EXPECT_LT(report.latest_s, kLateS);
    if (delay_us > 1'000'000 && nth == 0) {
      for (const std::string& end : report.ends) {
        EXPECT_EQ(end.find("no_resource: rank " + std::to_string(chosen) + ": no memory for the team: "), 0U);
      }
    }
  }
}

/// Allocations of the heap that a call makes before its offer and after it.
constexpr int kFirst = 4;
constexpr int kLast = 90;

TEST(Refusing, WithoutArenaWithinANode) { refuse_at_random("arena_within_a_node", 0, 0, 0); }
TEST(Refusing, WithoutArenaBetweenNodes) { refuse_at_random("arena_between_nodes", 1, 0, 0); }
TEST(Refusing, WithoutArenaOnTwoNodes) { refuse_at_random("arena_on_two_nodes", 2, 0, 0); }
TEST(Refusing, WithoutHeapWithinANode) { refuse_at_random("heap_within_a_node", 0, kFirst, kLast); }
TEST(Refusing, WithoutHeapBetweenNodes) { refuse_at_random("heap_between_nodes", 1, kFirst, kLast); }

}  // namespace
}  // namespace torii::tests
