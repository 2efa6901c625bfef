// SPDX-License-Identifier: Apache-2.0
// The choice between stores through the caches and past them: what it times, and what it decides.
#include "runtime/execution/store_choice.hpp"

#include <gtest/gtest.h>

namespace torii {
namespace {

using Way = StoreChoice::Way;

/// A machine on which a line takes so long either way.
struct Machine {
  double cached_ns;
  double non_temporal_ns;
};

constexpr std::size_t kBlockBytes = 64 * 512;
/// The first ones touch memory that nobody has touched: they go through the caches, and are not timed.
constexpr int kCold = 64;

/// Sends messages and returns how many of them were stored past the caches.
int send(StoreChoice& choice, const Machine& machine, int messages) {
  int non_temporal = 0;
  for (int i = 0; i < messages; ++i) {
    const StoreChoice::Turn turn = choice.next();
    const double line_ns = turn.way == Way::non_temporal ? machine.non_temporal_ns : machine.cached_ns;
    non_temporal += turn.way == Way::non_temporal ? 1 : 0;
    if (turn.timed) choice.record(turn.way, static_cast<std::int64_t>(line_ns * kBlockBytes / 64), kBlockBytes);
  }
  return non_temporal;
}

TEST(StoreChoice, TriesBothThenStaysInTheCachesWhereTheyAreNear) {
  StoreChoice choice(true);
  EXPECT_EQ(send(choice, {45, 2}, kCold), 0) << "first touches say nothing";
  EXPECT_EQ(send(choice, {2, 2}, 6), 3);
  EXPECT_EQ(choice.best(), Way::cached);
  EXPECT_EQ(send(choice, {2, 2}, 5000), 9) << "the other way is tried once in 512 messages";
}

TEST(StoreChoice, GoesPastTheCachesWhereTheyAreFar) {
  StoreChoice choice(true);
  send(choice, {30, 2}, kCold + 6);
  EXPECT_EQ(choice.best(), Way::non_temporal);
  EXPECT_GE(send(choice, {30, 2}, 1000), 990);
}

TEST(StoreChoice, CountsWhatTheReaderPays) {
  StoreChoice choice(true);
  send(choice, {11, 2}, 1000);
  EXPECT_EQ(choice.best(), Way::cached) << "9 ns a line saved by the sender, 10 ns more for the reader";
  send(choice, {14, 2}, 1000);
  EXPECT_EQ(choice.best(), Way::non_temporal) << "12 ns a line saved by the sender";
}

TEST(StoreChoice, ChargesASenderLessForItsReader) {
  StoreChoice choice(false);
  send(choice, {4, 2}, 1000);
  EXPECT_EQ(choice.best(), Way::cached) << "2 ns a line saved by the sender, 3 ns more for the reader";
  send(choice, {11, 2}, 1000);
  EXPECT_EQ(choice.best(), Way::non_temporal) << "9 ns a line saved by the sender";
}

TEST(StoreChoice, FollowsTheMachine) {
  StoreChoice choice(true);
  for (int round = 0; round < 3; ++round) {
    send(choice, {2, 2}, 1000);
    EXPECT_EQ(choice.best(), Way::cached) << round;
    // The way in use is timed often, so that it is left soon when it becomes slow.
    send(choice, {30, 2}, 200);
    EXPECT_EQ(choice.best(), Way::non_temporal) << round;
  }
}

TEST(StoreChoice, IsNotMisledByARankThatLostItsCpu) {
  StoreChoice choice(true);
  for (int i = 0; i < 2000; ++i) {
    const StoreChoice::Turn turn = choice.next();
    if (turn.timed) choice.record(turn.way, i % 3 == 0 ? 1'000'000 : 2 * kBlockBytes / 64, kBlockBytes);
    if (i > kCold + 20) {
      EXPECT_EQ(choice.best(), Way::cached) << i;
    }
  }
}

TEST(StoreChoice, CanBeForced) {
  StoreChoice choice(true);
  choice.force(Way::non_temporal);
  EXPECT_EQ(send(choice, {2, 1000}, 500), 500);
}

}  // namespace
}  // namespace torii
