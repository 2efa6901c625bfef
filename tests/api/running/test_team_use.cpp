// SPDX-License-Identifier: Apache-2.0
// The test of who may call a team that has one caller at a time.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "api/running/entry.hpp"

namespace torii {
namespace {

using Call = TeamUse::Call;

void in_another_thread(const std::function<void()>& body) { std::thread(body).join(); }

/// As a blocking call does, which leaves the longer way to others.
Call begin(TeamUse& use) { return use.try_begin_alone(0) ? Call::alone : use.try_begin_call(); }

TEST(TeamUse, FirstThreadIsAloneUntilASecondOneCalls) {
  TeamUse use(false);
  EXPECT_FALSE(use.try_begin_alone(0)) << "no thread has called yet";
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(begin(use), Call::alone);
    EXPECT_TRUE(use.is_taken());
    EXPECT_EQ(begin(use), Call::refused) << "a call within a call";
    use.end_call(Call::alone);
    EXPECT_FALSE(use.is_taken());
  }
  in_another_thread([&] {
    ASSERT_EQ(begin(use), Call::marked);
    EXPECT_TRUE(use.is_taken());
    EXPECT_EQ(begin(use), Call::refused);
    use.end_call(Call::marked);
  });
  EXPECT_FALSE(use.try_begin_alone(0));
  ASSERT_EQ(begin(use), Call::marked);
  use.end_call(Call::marked);
}

TEST(TeamUse, SecondThreadIsRefusedWhileTheFirstIsInside) {
  TeamUse use(false);
  const auto expect_refused = [&] {
    in_another_thread([&] {
      EXPECT_TRUE(use.is_taken());
      EXPECT_EQ(begin(use), Call::refused);
    });
  };
  ASSERT_EQ(begin(use), Call::alone);
  expect_refused();
  use.add(TeamUse::kInBackground);
  expect_refused();
  use.end_call(Call::alone);
  EXPECT_TRUE(use.has(TeamUse::kInBackground)) << "the second thread undid a mark";
  ASSERT_EQ(begin(use), Call::marked);
  expect_refused();
  use.end_call(Call::marked);
  EXPECT_TRUE(use.has(TeamUse::kInBackground));
}

TEST(TeamUse, HolderAloneMayCall) {
  for (const bool is_alone : {true, false}) {
    TeamUse use(false);
    const Call own = is_alone ? Call::alone : Call::marked;
    if (!is_alone) {
      in_another_thread([&] { use.end_call(begin(use)); });
    }
    ASSERT_EQ(begin(use), own);
    use.hold();
    use.end_call(own);
    in_another_thread([&] {
      EXPECT_TRUE(use.is_taken());
      EXPECT_EQ(begin(use), Call::refused);
    });
    EXPECT_FALSE(use.is_taken());
    ASSERT_EQ(begin(use), own);
    use.end_call(own);
    use.let_go();
    in_another_thread([&] {
      EXPECT_EQ(begin(use), Call::marked);
      use.end_call(Call::marked);
    });
  }
}

TEST(TeamUse, ThreadThatHasTakenOverForGoodIsAloneAgain) {
  TeamUse use(false);
  use.end_call(begin(use));
  in_another_thread([&] {
    for (std::uint32_t i = 1; i < TeamUse::kCallsUntilAlone; ++i) {
      ASSERT_EQ(begin(use), Call::marked);
      use.end_call(Call::marked);
    }
    ASSERT_EQ(begin(use), Call::alone);
    EXPECT_EQ(begin(use), Call::refused);
    use.end_call(Call::alone);
    EXPECT_TRUE(use.try_begin_alone(0));
    in_another_thread([&] { EXPECT_EQ(begin(use), Call::refused); });
    use.end_alone();
  });
  ASSERT_EQ(begin(use), Call::marked);
  use.end_call(Call::marked);
}

/// A second thread often comes while the first one stands still in the midst of a beginning or an end.
TEST(TeamUse, OneThreadIsInsideAtATime) {
  for (int round = 0; round < 150; ++round) {
    TeamUse use(false);
    std::atomic<bool> is_over = false;
    std::atomic<int> inside = 0;
    std::atomic<int> met = 0;
    const auto call_once = [&] {
      const Call call = begin(use);
      if (call == Call::refused) return;
      met += inside.fetch_add(1, std::memory_order_relaxed);
      inside.fetch_sub(1, std::memory_order_relaxed);
      use.end_call(call);
    };
    std::thread first([&] {
      while (!is_over) call_once();
    });
    std::vector<std::thread> others;
    for (int i = 0; i < 3; ++i) {
      others.emplace_back([&] {
        for (int made = 0; made < 1000; ++made) call_once();
      });
    }
    for (std::thread& thread : others) thread.join();
    is_over = true;
    first.join();
    EXPECT_EQ(met, 0);
    EXPECT_FALSE(use.is_taken());
    EXPECT_NE(begin(use), Call::refused);
  }
}

}  // namespace
}  // namespace torii
