// SPDX-License-Identifier: Apache-2.0
// The explorer finds exactly the results that its memory model allows, although it does not let ranks take turns
// everywhere.
#include <gtest/gtest.h>

#include "tests/exploration/litmus.hpp"

namespace torii::exploration {
namespace {

using namespace litmus;
using Seen = std::set<Litmus::Results>;

struct LitmusEnd {
  Outcome outcome;
  Seen seen;
};

LitmusEnd explored(std::vector<Litmus::Program> programs) {
  Litmus world(std::move(programs));
  Outcome outcome = explorer().explore(world);
  return {std::move(outcome), world.seen()};
}

Seen seen(std::vector<Litmus::Program> programs) {
  const LitmusEnd all = explored(std::move(programs));
  EXPECT_EQ(all.outcome.failure, "");
  return all.seen;
}

bool has(const Seen& all, const Litmus::Results& one) { return all.contains(one); }

TEST(Litmus, MessagePassing) {
  EXPECT_EQ(seen({store_y_then_x_release, load_x_acquire_then_y}), (Seen{{0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 1, 1}}));
  EXPECT_EQ(seen({store_y_then_x_relaxed, load_x_acquire_then_y}).size(), 4U) << "a store that promises nothing";
  EXPECT_EQ(seen({store_y_then_x_release, load_x_then_y_relaxed}).size(), 4U) << "a load that promises nothing";
}

TEST(Litmus, PlainDataBehindAMessage) {
  const Seen right{{0, 0, 0, 0}, {0, 0, 1, 7}};
  EXPECT_EQ(seen({store_data_then_x_release, load_x_acquire_then_data}), right);
  EXPECT_EQ(seen({store_data_fence_x, load_x_acquire_then_data}), right);
  EXPECT_EQ(seen({store_data_then_x_release, load_x_fence_then_data}), right);
  EXPECT_EQ(seen({store_data_fence_x, load_x_fence_then_data}), right);
  EXPECT_NE(explored({store_data_then_x_relaxed, load_x_acquire_then_data}).outcome.failure.find("data race"),
            std::string::npos);
}

TEST(Litmus, AReadModifyWriteContinuesARelease) {
  const Seen all = seen({store_data_then_x_release, add_to_x_relaxed, load_x_acquire_as_2_then_data});
  EXPECT_TRUE(has(all, {0, 0, 0, 0, 2, 7}));
  EXPECT_FALSE(has(all, {0, 0, 0, 0, 2, 0}));
}

TEST(Litmus, StoreBuffering) {
  EXPECT_EQ(seen({store_x_load_y, store_y_load_x}).size(), 4U) << "release and acquire allow that both read 0";
  const Seen no_zeros{{0, 0, 1, 0}, {1, 0, 0, 0}, {1, 0, 1, 0}};
  EXPECT_EQ(seen({store_x_load_y_sequential, store_y_load_x_sequential}), no_zeros);
  EXPECT_EQ(seen({store_x_fence_load_y, store_y_fence_load_x}), no_zeros);
  EXPECT_EQ(seen({store_x_load_y, store_y_fence_load_x}).size(), 4U) << "a fence on one side";
  explorer().take_turns_at_each_store(true);
  EXPECT_EQ(seen({store_x_load_y, store_y_fence_of_all_load_x}), no_zeros) << "unless it is of both";
  // A sleeper whose mark stays, a putter, and another sleeper whose mark comes and goes.
  for (const Litmus::Results& one : seen({store_x_load_y, add_to_y_fence_of_all_load_x_twice, add_to_y_and_subtract})) {
    EXPECT_TRUE(one[0] != 0 || (one[2] == 1 && one[3] == 1)) << "a putter that sees no mark was seen at every look";
  }
  explorer().take_turns_at_each_store(false);
}

/// The model leaves this out (docs/exploration.md): C++20 allows that both read 1.
TEST(Litmus, LoadBuffering) {
  EXPECT_EQ(seen({load_x_store_y, load_y_store_x}), (Seen{{0, 0, 0, 0}, {0, 0, 1, 0}, {1, 0, 0, 0}}));
}

TEST(Litmus, AWordIsNeverReadBackwards) {
  EXPECT_EQ(seen({store_x_1_then_2, load_x_twice}),
            (Seen{{0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 0, 2}, {0, 0, 1, 1}, {0, 0, 1, 2}, {0, 0, 2, 2}}));
}

TEST(Litmus, WritesReachAThirdRankByTheSecond) {
  EXPECT_TRUE(has(seen({store_x, pass_x_on_to_y_relaxed, load_y_acquire_then_x}), {0, 0, 1, 0, 1, 0}))
      << "a store that promises nothing passes on nothing";
  EXPECT_FALSE(has(seen({store_x, pass_x_on_to_y, load_y_acquire_then_x}), {0, 0, 1, 0, 1, 0}));
}

TEST(Litmus, ReadModifyWritesFollowEachOther) {
  EXPECT_EQ(seen({add_to_x, add_to_x}), (Seen{{0, 0, 1, 0}, {1, 0, 0, 0}}));
  EXPECT_EQ(seen({claim_x, claim_x}), (Seen{{1, 0, 0, 0}, {0, 0, 1, 0}}));
  EXPECT_EQ(seen({claim_x, claim_x, claim_x}).size(), 3U);
}

TEST(Litmus, BlocksOfLoadsLoseNoResult) {
  const std::vector<std::vector<Litmus::Program>> all{
      {store_y_then_x_relaxed, load_x_then_y_relaxed, load_x_acquire_then_y},
      {store_x_load_y, store_y_load_x},
      {store_x_1_then_2, load_x_twice, load_x_then_y_relaxed},
      {store_x, pass_x_on_to_y_relaxed, load_y_acquire_then_x},
      {load_x_store_y, load_y_store_x},
      {store_data_then_x_release, add_to_x_relaxed, load_x_acquire_as_2_then_data},
  };
  for (const auto& programs : all) {
    const LitmusEnd blocks = explored(programs);
    explorer().take_turns_at_each_load(true);
    const LitmusEnd turns = explored(programs);
    explorer().take_turns_at_each_load(false);
    EXPECT_EQ(blocks.seen, turns.seen);
    EXPECT_LE(blocks.outcome.states, turns.outcome.states);
  }
}

/// Who has read x too early, and then acquires it by y, looks at x again although no store of it is newer than that.
TEST(Litmus, AWordThatAnotherOneTellsOfIsLookedAtAgain) {
  EXPECT_EQ(explored({store_x_then_y_release, await_x_looking_at_y}).outcome.failure, "");
}

TEST(Litmus, AFailureTellsItsHistory) {
  const Outcome outcome = explored({store_data_then_x_relaxed, load_x_acquire_then_data}).outcome;
  ASSERT_GE(outcome.history.size(), 2U);
  EXPECT_NE(outcome.history.front().find("stores"), std::string::npos) << outcome.history.front();
  EXPECT_NE(outcome.history.back().find("litmus.cpp"), std::string::npos) << outcome.history.back();
}

}  // namespace
}  // namespace torii::exploration
