// SPDX-License-Identifier: Apache-2.0
// The choice between stores through the caches and past them: what it times, and what it decides. And which calls share
// a choice, and count as turns of one.
#include "runtime/execution/store_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/execution/learnt_choices.hpp"

namespace torii {
namespace {

using Way = StoreChoice::Way;

/// A machine on which a line takes so long either way.
struct Machine {
  double cached_ns;
  double non_temporal_ns;
};

constexpr std::size_t kBlockBytes = 64 * 512;
/// Both ways have been tried in the first trials.
constexpr int kTrials = 72;
/// Turns of each way in these trials: from 2 and from 66 on.
constexpr int kTried = 6;
/// The end of the first trial.
constexpr int kFirstTrial = 8;

/// Sends messages and returns how many of them were stored past the caches.
int send(StoreChoice& choice, const Machine& machine, int messages, bool is_first_touch = false) {
  int non_temporal = 0;
  for (int i = 0; i < messages; ++i) {
    const StoreChoice::Turn turn = choice.next(is_first_touch);
    const double line_ns = turn.way == Way::non_temporal ? machine.non_temporal_ns : machine.cached_ns;
    non_temporal += turn.way == Way::non_temporal ? 1 : 0;
    if (turn.timed) choice.record(turn.way, static_cast<std::int64_t>(line_ns * kBlockBytes / 64), kBlockBytes);
  }
  return non_temporal;
}

TEST(StoreChoice, KnowsTheWayAfterAFewMessages) {
  StoreChoice choice(true);
  EXPECT_EQ(send(choice, {30, 2}, 2), 0);
  EXPECT_FALSE(choice.is_known());
  EXPECT_EQ(send(choice, {30, 2}, kFirstTrial - 2), 3);
  EXPECT_TRUE(choice.is_known());
  EXPECT_EQ(choice.best(), Way::non_temporal);
}

TEST(StoreChoice, TriesBothThenStaysInTheCachesWhereTheyAreNear) {
  StoreChoice choice(true);
  EXPECT_EQ(send(choice, {2, 2}, kTrials), kTried);
  EXPECT_EQ(choice.best(), Way::cached);
  send(choice, {2, 2}, 4200 - kTrials);
  EXPECT_EQ(send(choice, {2, 2}, 3000), 6) << "the other way is tried once in 512 messages";
}

TEST(StoreChoice, GoesPastTheCachesWhereTheyAreFar) {
  StoreChoice choice(true);
  send(choice, {30, 2}, kTrials);
  EXPECT_EQ(choice.best(), Way::non_temporal);
  EXPECT_GE(send(choice, {30, 2}, 1000), 985);
}

TEST(StoreChoice, FirstTouchesAreNotTimedAndUseTheBestWayKnown) {
  StoreChoice choice(true);
  EXPECT_EQ(send(choice, {90, 90}, 100, true), 0) << "nothing is known yet";
  EXPECT_FALSE(choice.is_known());
  send(choice, {30, 2}, kTrials);
  EXPECT_EQ(send(choice, {2, 90}, 100, true), 100) << "another plan has learnt it";
  EXPECT_EQ(choice.best(), Way::non_temporal);
}

/// In the place of a peer's result no one knows whether memory has been touched.
TEST(StoreChoice, FirstTouchesTeachNothingForLong) {
  StoreChoice choice(true);
  send(choice, {90, 2}, 2);
  EXPECT_FALSE(choice.is_known());
  StoreChoice misled(true);
  send(misled, {90, 2}, kFirstTrial);
  EXPECT_EQ(misled.best(), Way::non_temporal);
  send(misled, {2, 2}, kTrials - kFirstTrial);
  EXPECT_EQ(misled.best(), Way::cached);
  StoreChoices choices(true);
  send(choices.in_place.of(4096), {90, 2}, 64);
  EXPECT_FALSE(choices.in_place.of(4096).is_known());
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
    const StoreChoice::Turn turn = choice.next(false);
    if (turn.timed) choice.record(turn.way, i % 3 == 0 ? 1'000'000 : 2 * kBlockBytes / 64, kBlockBytes);
    if (i > 20) {
      EXPECT_EQ(choice.best(), Way::cached) << i;
    }
  }
}

TEST(StoreChoice, CanBeForced) {
  StoreChoice choice(true);
  choice.force(Way::non_temporal);
  EXPECT_EQ(send(choice, {2, 1000}, 500), 500);
  EXPECT_TRUE(choice.is_known());
}

/// Calls that alternate are of one choice, but not alike: one takes ten times as long for each byte.
TEST(TimedChoice, CallsThatAlternateTryBothWaysEach) {
  for (const bool slow_is_first : {false, true}) {
    TimedChoice choice;
    for (int i = 0; i < kTrials; ++i) {
      const TimedChoice::Turn turn = choice.next();
      const float call = (i % 2 == 0) == slow_is_first ? 10 : 1;
      if (turn.timed) choice.record(turn.way, call * (turn.way == 0 ? 2 : 1));
    }
    EXPECT_EQ(choice.best(), 1);
  }
}

TEST(TimedChoice, CommonTurnsTryEachWayTogether) {
  TimedChoice one;
  TimedChoice other;  // which comes to another conclusion, and has an operand to read in every second call only
  int trials = 0;
  for (std::uint32_t number = 0; number < 2000; ++number) {
    const TimedChoice::Turn turn = one.common(number);
    const TimedChoice::Turn same = other.common(number);
    EXPECT_EQ(turn.timed, same.timed) << number;
    if (turn.timed) {
      ++trials;
      EXPECT_EQ(turn.way, same.way) << number;
      one.record(turn.way, turn.way == 0 ? 2 : 1);
      if (number % 2 == 0) other.record(same.way, same.way == 0 ? 1 : 2);
    } else if (number > 20) {
      EXPECT_EQ(turn.way, 1) << number;
      EXPECT_EQ(same.way, 0) << number;
    }
  }
  EXPECT_EQ(trials, 42);
}

/// Two ranks, each of which saves time by way 1 at the other's cost: in all way 1 takes longer.
TEST(TimedChoice, WhatMovesCostsToOthersIsNotChosen) {
  TimedChoice ranks[2];
  for (std::uint32_t number = 0; number < 2000; ++number) {
    const TimedChoice::Turn turns[] = {ranks[0].common(number), ranks[1].common(number)};
    for (const int rank : {0, 1}) {
      const TimedChoice::Turn& own = turns[rank];
      const float cost = 10.0F - 4.0F * static_cast<float>(own.way) + 7.0F * static_cast<float>(turns[1 - rank].way);
      if (own.timed) ranks[rank].record(own.way, cost);
    }
  }
  EXPECT_EQ(ranks[0].best(), 0);
  EXPECT_EQ(ranks[1].best(), 0);
}

TEST(ChoicesBySize, HaveOneForEachPowerOfTwo) {
  ChoicesBySize<TimedChoice, 2048> choices;
  std::set<const TimedChoice*> all;
  for (std::size_t bytes = 1024; bytes <= std::size_t{1} << 30; bytes *= 2) {
    all.insert(&choices.of(bytes));
    EXPECT_EQ(&choices.of(bytes), &choices.of(2 * bytes - 1)) << bytes;
  }
  EXPECT_EQ(all.size(), 16U);
  EXPECT_EQ(&choices.of(0), &choices.of(2047));
}

TEST(LearntChoices, AreOfFlowsThatDoLikeWork) {
  LearntChoices learnt;
  const Flow sends = {.sources = {{.stream = kOwn}}};
  const Flow keeps = {.sources = {{.stream = kOwn}}, .keep = true};
  const Flow forwards = {.sources = {{.stream = 0}}};
  const Flow folds = {.sources = {{.stream = kOwn}, {.stream = 0}}};
  std::set<StoreChoices*> all = {&learnt.exchange_stores(true), &learnt.exchange_stores(false)};
  for (const Flow* flow : {&sends, &keeps, &forwards, &folds}) {
    for (const bool receives : {false, true}) all.insert(&learnt.stores(*flow, receives));
  }
  EXPECT_EQ(all.size(), 8U) << "an exchange copies own blocks, as a flow that sends";
  EXPECT_EQ(&learnt.stores(folds, true), &learnt.stores(folds, true));
  EXPECT_NE(&learnt.private_reads(Collective::broadcast, true), &learnt.private_reads(Collective::broadcast, false));
  EXPECT_NE(&learnt.private_reads(Collective::broadcast, true), &learnt.private_reads(Collective::all_gather, true));
}

TEST(CallTurns, AreOfCallsOfLikeSize) {
  constexpr std::size_t kBytes = PrivateReadChoice::kBytesMin;
  CallTurns turns;
  EXPECT_EQ(turns.next(kBytes), 0U);
  EXPECT_EQ(turns.next(2 * kBytes - 1), 1U);
  EXPECT_EQ(turns.next(2 * kBytes), 0U);
  EXPECT_EQ(turns.next_unequal(), 0U) << "apart from those of equal blocks";
  EXPECT_EQ(turns.next(kBytes), 2U);
}

}  // namespace
}  // namespace torii
