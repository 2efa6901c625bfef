// SPDX-License-Identifier: Apache-2.0
// Histories under faults: every one ends as it should, and the same seed gives the same history.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "tests/support/test_run.hpp"
#include "tools/torii-sim/faults/case.hpp"
#include "tools/torii-sim/faults/departures.hpp"
#include "tools/torii-sim/faults/heap.hpp"
#include "tools/torii-sim/faults/leak_check.hpp"
#include "tools/torii-sim/faults/run.hpp"
#include "tools/torii-sim/faults/simulated_job.hpp"
#include "tools/torii-sim/faults/vectors.hpp"

namespace torii::faults {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kHistories = 400;
constexpr std::uint64_t kHistoriesFull = 100'000;
constexpr std::uint64_t kFixedHistories = 0;
#else
constexpr std::uint64_t kHistories = 2800;
constexpr std::uint64_t kHistoriesFull = 1'000'000;
/// Those of the seeds 1, 2 and so on, which have every kind of fault and phase. The others are new in each run.
constexpr std::uint64_t kFixedHistories = 800;
#endif

constexpr const char* kName = "faults_test";

Tally run_histories(std::uint64_t first, std::uint64_t last) {
  Run all;
  all.first = first;
  all.last = last;
  Tally tally = run(all, [](const Tally&) {});
  for (const Failure& failure : tally.failures) {
    ADD_FAILURE() << tests::Seed{kName, failure.seed} << "\ntorii-sim faults --replay " << failure.seed << "\n"
                  << failure.text;
  }
  for (const NamedCount& one : kCounts) {
    std::printf("%s: %llu\n", one.name, static_cast<unsigned long long>(tally.counts.*one.count));
  }
  for (const auto& [kind, count] : tally.faults)
    std::printf("%s: %llu\n", kind.c_str(), static_cast<unsigned long long>(count));
  for (const auto& [phase, count] : tally.deaths) {
    std::printf("deaths while %s: %llu\n", phase.c_str(), static_cast<unsigned long long>(count));
  }
  return tally;
}

TEST(Faults, EveryHistoryEndsWithTheRightBitsOrACause) {
  // Those that failed once, or the one that is replayed.
  for (const tests::Seed& seed : tests::seeds_of(kName, 0)) run_histories(seed.value, seed.value);
  if (tests::is_replay()) return;
  const std::uint64_t count = (tests::is_full() ? kHistoriesFull : kHistories) - kFixedHistories;
  const std::uint64_t first = kFixedHistories + tests::first_seed(count);
  run_histories(first, first + count - 1);
}

/// Every kind of fault and every phase of a team's life has been there.
TEST(Faults, FixedHistoriesHaveEveryFaultAndPhase) {
  if (tests::is_replay()) GTEST_SKIP() << "one history is replayed";
  if (kFixedHistories == 0) GTEST_SKIP() << "the release build demands it of the same histories";
  const Tally tally = run_histories(1, kFixedHistories);
  for (const char* const kind : {"dies", "stops", "loses engine", "loses, unnoticed, engine", "lacks memory"}) {
    EXPECT_NE(tally.faults.count(kind), 0U) << kind;
  }
  for (const char* const phase : {"joining", "making the team", "splitting", "calling", "choosing survivors"}) {
    EXPECT_NE(tally.deaths.count(phase), 0U) << phase;
  }
}

TEST(Faults, WhatIsAllocatedAndNotFreedIsSeen) {
  const std::int64_t before = heap_bytes();
  auto kept = std::make_unique<std::vector<std::byte>>(1000);
  EXPECT_GE(heap_bytes() - before, 1000);
  kept.reset();
  EXPECT_EQ(heap_bytes(), before);
  Holdings held = holdings();
  EXPECT_GT(held.descriptors, 0U);
  EXPECT_EQ(difference(held, holdings()), "");
  held.descriptors -= 2;
  EXPECT_EQ(difference(held, holdings()), "2 descriptors are left open");
}

TEST(Faults, AVectorThatIsWrittenAfterItsCallIsSeen) {
  DrawnCall spec;
  spec.collective = TORII_ALLREDUCE;
  spec.count = 3;
  std::vector<std::byte> memory(2 * (12 + Vector::kGuardBytes), std::byte{0x5a});
  std::byte* const input = memory.data();
  std::byte* const result = input + 12 + Vector::kGuardBytes;
  CallVectors vectors(spec, {1, 0}, {input, 12}, {result, 12});
  vectors.fill();
  EXPECT_NE(vectors.difference(), "");
  std::memcpy(result, input, 12);
  EXPECT_EQ(vectors.difference(), "");
  vectors.spoil();
  EXPECT_NE(std::memcmp(result, input, 12), 0);
  vectors.seal();
  EXPECT_FALSE(vectors.has_changed());
  input[3] ^= std::byte{1};
  EXPECT_TRUE(vectors.has_changed());
  input[3] ^= std::byte{1};
  result[12] ^= std::byte{1};
  EXPECT_EQ(vectors.difference(), "bytes behind a vector were written");
}

TEST(Faults, SameSeedSameHistory) {
  for (const tests::Seed& seed : tests::seeds_of("faults_test/replays", 30)) {
    SCOPED_TRACE(seed);
    const History history = draw_history(seed.value);
    const Replay first = replay(history);
    const Replay again = replay(history);
    EXPECT_NE(first.digest, 0U) << first.failure;
    EXPECT_EQ(first.digest, again.digest);
    EXPECT_EQ(first.failure, again.failure);
  }
}

/// Two ranks, and a barrier to which the second comes late.
History history_with_pause(int pause_us) {
  History history;
  history.job.nodes = {0, 0};
  history.job.clock_offsets = {0};
  history.job.clock_drifts = {0};
  history.job.timeout_s = 0.5;
  Step step;
  step.call.collective = TORII_BARRIER;
  step.deviations.assign(2, Deviation::none);
  step.memory.assign(2, Memory::malloced);
  step.pauses_us = {0, pause_us};
  history.steps = {step};
  return history;
}

TEST(Faults, AMemberThatComesAfterTheDeadlineIsAReasonForATimeout) {
  const Verdict in_time = run(history_with_pause(300'000));
  EXPECT_EQ(in_time.failures, std::vector<std::string>());
  EXPECT_EQ(in_time.counts.failed_calls, 0U);
  const Verdict late = run(history_with_pause(600'000));
  EXPECT_EQ(late.failures, std::vector<std::string>());
  EXPECT_GT(late.counts.failed_calls, 0U);
}

TEST(Faults, AWaitIsForAMemberThatIsAway) {
  constexpr std::size_t kTeam = 1;
  Departures departures(2, 3);
  const std::vector<int> members = {0, 1};
  const auto waited = [&](fibers::Time since, fibers::Time now) {
    return departures.longest_wait(kTeam, members, since, now);
  };
  for (const int rank : members) departures.leave(kTeam, rank, 100);
  EXPECT_EQ(waited(0, 900), 0) << "nobody waits";
  departures.come(kTeam, 0, 1000);
  EXPECT_EQ(waited(0, 1300), 300) << "rank 1 has not come";
  departures.come(kTeam, 1, 1500);
  EXPECT_EQ(waited(0, 5000), 500) << "rank 1 came late, and is there";
  EXPECT_EQ(waited(1501, 5000), 0) << "that is long ago";
  departures.leave(kTeam, 0, 1600);
  departures.come(kTeam, 0, 1610);
  EXPECT_EQ(waited(1501, 9000), 0) << "rank 1 is stuck in the visit before, not away";
  departures.leave(kTeam, 1, 1700);
  EXPECT_EQ(waited(1501, 9000), 7300) << "from when it left";
  departures.come(kTeam, 1, 9000);
  departures.leave(kTeam, 0, 9100);
  departures.leave(kTeam, 1, 9100);
  departures.come(kTeam, 0, 20000);
  departures.come(kTeam, 1, 20010);
  EXPECT_EQ(waited(9001, 30000), 10) << "both were away";
}

TEST(Faults, ATimeoutIsRightOnlyWhereAMemberWasAway) {
  const History history = history_with_pause(0);
  fibers::Fibers fibers(1);
  const fibers::Time long_ago = fibers.now() - history.deadline();
  SimulatedJob stuck(history, fibers, nullptr);
  for (const int rank : {0, 1}) stuck.departures.come(0, rank, long_ago);
  stuck.departures.leave(0, 0, long_ago);
  stuck.departures.come(0, 0, long_ago);
  EXPECT_FALSE(stuck.is_timeout_right(0, 0, TORII_TIMEOUT));
  EXPECT_FALSE(stuck.is_timeout_right(0, 1, TORII_TIMEOUT));
  SimulatedJob late(history, fibers, nullptr);
  for (const int rank : {0, 1}) late.departures.leave(0, rank, long_ago);
  late.departures.come(0, 0, long_ago);
  EXPECT_FALSE(late.is_timeout_right(0, 0, TORII_POISONED)) << "no member has reported a timeout";
  EXPECT_FALSE(late.is_timeout_right(0, 0, TORII_ABORTED));
  EXPECT_TRUE(late.is_timeout_right(0, 0, TORII_TIMEOUT));
  EXPECT_TRUE(late.is_timeout_right(0, 1, TORII_POISONED));
}

TEST(Faults, SomeHistoriesHaveStreaks) {
  constexpr int kDrawn = 2000;
  int streaks = 0;
  int odd_calls = 0;
  for (std::uint64_t seed = 1; seed <= kDrawn; ++seed) {
    const History history = draw_history(seed);
    const auto has_streak = [](const Step& step) { return step.streak.calls != 0; };
    const auto has_odd_call = [](const Step& step) {
      return step.streak.calls != 0 &&
             std::ranges::any_of(step.deviations, [](Deviation one) { return one != Deviation::none; });
    };
    streaks += std::ranges::any_of(history.steps, has_streak) ? 1 : 0;
    odd_calls += std::ranges::any_of(history.steps, has_odd_call) ? 1 : 0;
  }
  EXPECT_GT(streaks, kDrawn / 10);
  EXPECT_GT(odd_calls, kDrawn / 40);
}

/// A streak of broadcasts from rank 0, of which rank 1 makes its call number 20 when rank 0 is 60 calls ahead.
History history_of_broadcasts() {
  History history = history_with_pause(0);
  history.job.settings.clear();
  Step& step = history.steps.front();
  step.call = {};
  DrawnCall broadcast;
  broadcast.collective = TORII_BROADCAST;
  broadcast.count = 3;
  step.streak.turns = {broadcast};
  step.streak.calls = 100;
  step.streak.lags = {{.rank = 1, .at = 20, .calls = 60}};
  return history;
}

TEST(Faults, AStreakIsPlayedWithARankFarAhead) {
  const History history = history_of_broadcasts();
  EXPECT_NE(history.steps.front().streak.call(0, 1).seed, history.steps.front().streak.call(0, 2).seed);
  const Verdict verdict = run(history);
  EXPECT_EQ(verdict.failures, std::vector<std::string>());
  EXPECT_EQ(verdict.counts.calls, 200U);
}

TEST(Faults, AStreakWithACallThatDiffersFails) {
  History history = history_of_broadcasts();
  Step& step = history.steps.front();
  step.streak.odd_call = 90;
  step.other = step.streak.turns.front();
  step.other.count = 4;
  step.deviations[1] = Deviation::differs;
  const Verdict verdict = run(history);
  EXPECT_EQ(verdict.failures, std::vector<std::string>());
  EXPECT_GT(verdict.counts.failed_calls, 0U);
  EXPECT_NE(text_of(history).find("rank 1 differs (call 90)"), std::string::npos);
}

TEST(Faults, PartsOfAHistoryAreNamed) {
  History history = draw_history(1);
  leave_out(history, "");
  EXPECT_FALSE(history.steps[0].is_left_out);
  leave_out(history, "s0");
  EXPECT_TRUE(history.steps[0].is_left_out);
  for (const char* const names : {"s999", "x1", "s", "f99", "s0,"}) {
    EXPECT_THROW(leave_out(history, names), Error) << names;
  }
}

}  // namespace
}  // namespace torii::faults
