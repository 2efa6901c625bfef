// SPDX-License-Identifier: Apache-2.0
// Every order of the worlds is right, and none would be without the memory orders that the code asks for.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>

#include "tests/exploration/worlds.hpp"
#include "tests/support/test_run.hpp"

namespace torii::exploration {
namespace {

/// Orders that no world needs, by a part of the site's name, and why they stand in the code all the same.
struct Unneeded {
  std::string_view site;
  std::string_view why;
};
constexpr Unneeded kUnneeded[] = {
    {"SharedMemory::ring", "publishes nothing: a woken rank looks at its signals, which have orders of their own"},
    {"write_notice", "the sum over all words says whether they belong together, in whatever order they come"},
    {"read_notice", "the same"},
    {"is_blank", "the same: it says only that a notice has begun to come"},
    {"SharedMemory::sleep",
     "the sleeper's side of a handshake whose other side has no fence, on purpose: a missed ring "
     "costs one sleep (docs/memory_order.md, \"The doorbell\")"},
    {"SleepMark", "the same"},
    {"PairWords::has_peer_withdrawn", "for senders that fail, which no world has: their bytes change under way"},
};

/// Without an order that is not needed there may be far more states than with it; so many of them are looked at.
constexpr std::size_t kStatesOfUnneeded = 30'000;

struct Explored {
  Listed listed;
  Outcome outcome;
};

struct Ordered {
  Sites::Group group;
  std::vector<std::size_t> worlds;  ///< that reach it, by states
};

std::string report(const Outcome& outcome) {
  std::string text = outcome.failure;
  for (const std::string& line : outcome.history) text += "\n    " + line;
  return text;
}

class Exploration : public testing::Test {
 protected:
  /// Explores all worlds once for all tests.
  static void SetUpTestSuite() {
    const char* const only = std::getenv("TORII_EXPLORE");
    for (Listed& listed : worlds(tests::is_full())) {
      if (only != nullptr && listed.name.find(only) == std::string::npos) continue;
      explorer().sites().forget_reached();
      const auto begun = std::chrono::steady_clock::now();
      const auto world = listed.make();
      Outcome outcome = explorer().explore(*world);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
      std::cout << listed.name << ": " << outcome.states << " states, " << outcome.transitions << " transitions, "
                << outcome.ends << " ends, depth " << outcome.depth << ", " << took.count() << " s" << std::endl;
      for (auto& group : explorer().sites().ordered()) {
        Ordered& ordered = sites_[group.name];
        ordered.worlds.push_back(explored_.size());
        ordered.group = std::move(group);
      }
      explored_.push_back({std::move(listed), std::move(outcome)});
    }
  }

  /// Before the explorer, whose sites they name, goes.
  static void TearDownTestSuite() {
    explored_.clear();
    sites_.clear();
  }

  static std::vector<Explored> explored_;
  static std::map<std::string, Ordered> sites_;
};
std::vector<Explored> Exploration::explored_;
std::map<std::string, Ordered> Exploration::sites_;

TEST_F(Exploration, NoStateIsADeadlockALostOrADoubledMessageOrARace) {
  std::size_t states = 0;
  std::size_t transitions = 0;
  for (const Explored& one : explored_) {
    EXPECT_EQ(one.outcome.failure, "") << one.listed.name << ": " << report(one.outcome);
    EXPECT_TRUE(one.outcome.complete) << one.listed.name;
    states += one.outcome.states;
    transitions += one.outcome.transitions;
  }
  std::cout << explored_.size() << " worlds: " << states << " states, " << transitions << " transitions\n";
}

/// The worlds with few states once more, without the reduction to blocks of loads.
TEST_F(Exploration, BlocksOfLoadsHideNothing) {
  constexpr std::size_t kFew = 1000;
  std::size_t compared = 0;
  for (const Explored& one : explored_) {
    if (one.outcome.states > kFew) continue;
    explorer().take_turns_at_each_load(true);
    const Outcome outcome = explorer().explore(*one.listed.make());
    explorer().take_turns_at_each_load(false);
    EXPECT_EQ(outcome.failure, one.outcome.failure) << one.listed.name << ": " << report(outcome);
    EXPECT_GE(outcome.states, one.outcome.states) << one.listed.name;
    ++compared;
  }
  EXPECT_NE(compared, 0U);
}

/// Without the time after which a sleeper looks again, and without its fence for all, the doorbell is not enough
/// (docs/memory_order.md, "The doorbell"): the putter has no fence between its signal and its look at the sleeper.
TEST_F(Exploration, ASleepThatDoesNotEndByItsTimeMissesAWakeUp) {
  const Outcome outcome = explorer().explore(*sleepers_without_time());
  EXPECT_NE(outcome.failure.find("sleeps"), std::string::npos) << report(outcome);
  EXPECT_FALSE(outcome.history.empty());
}

/// The first sleep of a wait makes that fence, and its mark stays for the others.
TEST_F(Exploration, ASleepAfterAFenceOfAllMissesNoWakeUp) {
  explorer().take_turns_at_each_store(true);
  Station::let_sleepers_fence(true);
  const Outcome outcome = explorer().explore(*sleepers_without_time());
  Station::let_sleepers_fence(false);
  explorer().take_turns_at_each_store(false);
  EXPECT_EQ(outcome.failure, "") << report(outcome);
  EXPECT_TRUE(outcome.complete);
}

/// Weakens the order of each site to relaxed, one after the other, and drops each fence.
TEST_F(Exploration, FindsEachOrderThatIsRemoved) {
  int found = 0;
  int unneeded = 0;
  for (auto& [name_of_site, ordered] : sites_) {
    std::ranges::sort(ordered.worlds, {}, [&](std::size_t one) { return explored_[one].outcome.states; });
    const bool known = std::ranges::any_of(
        kUnneeded, [&](const Unneeded& one) { return name_of_site.find(one.site) != std::string::npos; });
    explorer().sites().weaken(ordered.group.sites);
    // A world that does not need the order may have millions of states without it, so first all are looked at in part.
    std::string failure;
    for (const std::size_t most : {kStatesOfUnneeded, Explorer::kStatesMax}) {
      if (known && most == Explorer::kStatesMax) break;
      for (const std::size_t world : ordered.worlds) {
        if (!failure.empty()) break;
        const Outcome outcome = explorer().explore(*explored_[world].listed.make(), most);
        if (!outcome.failure.empty()) failure = explored_[world].listed.name + ": " + outcome.failure;
      }
    }
    explorer().sites().weaken({});
    std::cout << "without " << name(ordered.group.order) << " of " << name_of_site << ": "
              << (failure.empty() ? "nothing found" : failure) << std::endl;
    if (known) {
      EXPECT_EQ(failure, "") << name_of_site << " is needed after all";
      ++unneeded;
    } else {
      EXPECT_NE(failure, "") << name_of_site;
      found += failure.empty() ? 0 : 1;
    }
  }
  std::cout << found << " orders found to be needed, " << unneeded << " that are known not to be\n";
  EXPECT_GE(found, 10);
}

}  // namespace
}  // namespace torii::exploration
