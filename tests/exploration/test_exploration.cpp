// SPDX-License-Identifier: Apache-2.0
// Every order of the worlds is right.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include "tests/exploration/worlds.hpp"

namespace torii::exploration {
namespace {

TEST(Exploration, NoOrderIsADeadlockALostOrADoubledMessage) {
  std::size_t states = 0;
  std::size_t transitions = 0;
  for (const Listed& listed : worlds()) {
    const auto begun = std::chrono::steady_clock::now();
    const auto world = listed.make();
    const Outcome outcome = explorer().explore(*world);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
    std::cout << listed.name << ": " << outcome.states << " states, " << outcome.transitions << " transitions, "
              << outcome.ends << " ends, depth " << outcome.depth << ", " << took.count() << " ms\n";
    for (const std::string& line : outcome.history) std::cout << "  " << line << '\n';
    EXPECT_EQ(outcome.failure, "") << listed.name;
    states += outcome.states;
    transitions += outcome.transitions;
  }
  std::cout << "together " << states << " states, " << transitions << " transitions\n";
}

TEST(Exploration, FindsEachOrderThatIsRemoved) {
  const auto list = worlds();
  for (const auto& group : explorer().sites().ordered()) {
    explorer().sites().weaken(group.sites);
    std::string found;
    for (const Listed& listed : list) {
      const auto world = listed.make();
      const Outcome outcome = explorer().explore(*world);
      if (outcome.failure.empty()) continue;
      found = listed.name + ": " + outcome.failure;
      break;
    }
    explorer().sites().weaken({});
    std::cout << name(group.order) << ' ' << group.name << ": " << found << '\n';
    EXPECT_NE(found, "") << group.name;
  }
}

}  // namespace
}  // namespace torii::exploration
