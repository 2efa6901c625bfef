// SPDX-License-Identifier: Apache-2.0
// An owner's puts: counted while any transport holds them, and freed with the last of owner and puts.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/fabric/put_owner.hpp"

namespace torii {
namespace {

TEST(PutOwner, IsDrainedWhenEveryHoldIsGone) {
  PutOwner owner;
  EXPECT_TRUE(owner.drained());
  PutHold one(owner.count());
  PutHold two(owner.count());
  EXPECT_FALSE(owner.drained());
  one.let_go();
  one.let_go();  // once
  EXPECT_FALSE(owner.drained());
  two = PutHold();
  EXPECT_TRUE(owner.drained());
}

TEST(PutOwner, KeepsTheFirstFailure) {
  PutOwner owner;
  PutHold one(owner.count());
  PutHold two(owner.count());
  PutHold three(owner.count());
  one.let_go();
  EXPECT_EQ(owner.status(), Status::ok);
  two.fail(Status::peer_lost);
  EXPECT_FALSE(owner.drained());
  EXPECT_EQ(owner.status(), Status::peer_lost);
  three.fail(Status::transport);
  three.fail(Status::transport);  // once
  EXPECT_TRUE(owner.drained());
  EXPECT_EQ(owner.status(), Status::peer_lost);
  PutHold nobodys(nullptr);
  nobodys.fail(Status::transport);
  const PutOwner next = std::move(owner);
  EXPECT_EQ(next.status(), Status::peer_lost);
  EXPECT_EQ(owner.status(), Status::ok);
}

TEST(PutOwner, KnowsNothingOfOthersPuts) {
  PutOwner owner;
  const PutOwner other;
  const PutHold hold(owner.count());
  const PutHold nobodys(nullptr);
  EXPECT_FALSE(owner.drained());
  EXPECT_TRUE(other.drained());
}

TEST(PutOwner, MovesWithItsPuts) {
  PutOwner owner;
  PutHold hold(owner.count());
  const PutOwner next = std::move(owner);
  EXPECT_TRUE(owner.drained());  // NOLINT(bugprone-use-after-move): says that it has none
  EXPECT_EQ(owner.count(), nullptr);
  EXPECT_FALSE(next.drained());
  PutHold moved = std::move(hold);
  EXPECT_FALSE(next.drained());
  moved.let_go();
  EXPECT_TRUE(next.drained());
}

TEST(PutOwner, MayGoBeforeItsPuts) {
  std::optional<PutOwner> owner(std::in_place);
  std::vector<PutHold> holds;
  for (int i = 0; i < 3; ++i) holds.emplace_back(owner->count());
  owner.reset();
  holds.clear();  // the sanitizers see a count that is used after it is freed, or never freed
}

/// A thread makes puts, whose sources another one reads; the first writes anew what is drained. The thread sanitizer
/// sees a source that is read too late.
TEST(PutOwner, OrdersTheLastReadBeforeTheNextStore) {
  constexpr int kRounds = 2000;
  constexpr int kSources = 4;
  PutOwner owner;
  std::array<std::int64_t, kSources> sources{};
  std::array<PutHold, kSources> under_way;
  std::atomic<int> made = 0;
  std::int64_t sum = 0;
  std::thread engine([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (made.load(std::memory_order_acquire) != round) std::this_thread::yield();
      for (int i = 0; i < kSources; ++i) {
        sum += sources[static_cast<std::size_t>(i)];
        under_way[static_cast<std::size_t>(i)].let_go();
      }
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    for (std::size_t i = 0; i < kSources; ++i) {
      sources[i] = round;
      under_way[i] = PutHold(owner.count());
    }
    made.store(round, std::memory_order_release);
    while (!owner.drained()) std::this_thread::yield();
  }
  engine.join();
  EXPECT_EQ(sum, std::int64_t{kSources} * kRounds * (kRounds + 1) / 2);
}

}  // namespace
}  // namespace torii
