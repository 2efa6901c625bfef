// SPDX-License-Identifier: Apache-2.0
// How a rank waits: how long it sleeps, how often it looks at the clock and gives others a turn, what counts as
// waiting.
#include "runtime/fabric/waiting.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <optional>
#include <vector>

#include "tests/support/test_run.hpp"

namespace torii {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kTimeoutNs = 30'000 * kMs;

/// Sleeps as asked, and notes for how long that was.
class Sleeper final : public Transport {
 public:
  explicit Sleeper(const Capabilities& capabilities) : capabilities_(capabilities) {}
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  int rank() const noexcept override { return 0; }
  int ranks() const noexcept override { return 2; }
  int node(int rank) const noexcept override { return rank; }
  std::byte* mapped(int, std::uint64_t) noexcept override { return nullptr; }
  Status put(const Put&) noexcept override { return Status::ok; }
  Status put_word(int, std::uint64_t, std::uint64_t) noexcept override { return Status::ok; }
  Status progress() noexcept override { return Status::ok; }
  bool drained() noexcept override { return true; }
  void sleep(SleepMark& mark, int most_us, bool (*)(void*), void*) noexcept override {
    mark.set(sleeping);
    slept_us.push_back(most_us);
    const std::int64_t us = most_us + late_us;
    const timespec time = {us / 1'000'000, us % 1'000'000 * 1000};
    nanosleep(&time, nullptr);
    late_us = 0;
  }
  void note_wait(std::int64_t waited_ns, std::int64_t) noexcept override { noted_ns.push_back(waited_ns); }
  std::int64_t clock_ns() const noexcept override { return clock ? *clock += ns_per_look : now_ns(); }
  bool alive(int) noexcept override { return true; }
  bool oversubscribed() const noexcept override { return shares_cpus; }

  bool shares_cpus = true;
  std::atomic<std::uint32_t> sleeping = 0;  ///< marks
  std::vector<int> slept_us;
  std::vector<std::int64_t> noted_ns;
  mutable std::optional<std::int64_t> clock;  ///< that goes on with each look at it, instead of the machine's
  std::int64_t ns_per_look = 30'000;
  int late_us = 0;  ///< how much longer the next sleep takes: to the waiter the process was stopped

 private:
  Capabilities capabilities_;
};

/// Waits for at least that long without anything moving.
void wait_quietly(Waiting& waiting, int ms) {
  const std::int64_t end_ns = now_ns() + ms * kMs;
  while (now_ns() < end_ns) {
    waiting.pause([](void*) { return true; }, nullptr);
  }
}

TEST(Waiting, SleepsAMillisecondBesideMappedPeers) {
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  Waiting waiting(sleeper, WaitMode::sleep, kTimeoutNs);
  wait_quietly(waiting, 60);
  ASSERT_GT(sleeper.slept_us.size(), 5U);
  for (const int us : sleeper.slept_us) EXPECT_EQ(us, 1000);
}

TEST(Waiting, OrWhereNothingWakesIt) {
  Sleeper sleeper({.name = "deaf", .wakes_on_put = false});
  Waiting waiting(sleeper, WaitMode::sleep, kTimeoutNs);
  wait_quietly(waiting, 60);
  for (const int us : sleeper.slept_us) EXPECT_EQ(us, 1000);
}

TEST(Waiting, SleepsBrieflyBetweenLooksAtOtherWork) {
  for (const bool is_mapped : {true, false}) {
    Sleeper sleeper({.name = "any", .mapped = is_mapped, .wakes_on_put = true});
    Waiting waiting(sleeper, WaitMode::sleep, kTimeoutNs);
    waiting.serve_others();
    wait_quietly(waiting, 20);
    waiting.moved();
    wait_quietly(waiting, 20);
    ASSERT_GT(sleeper.slept_us.size(), 5U);
    for (const int us : sleeper.slept_us) EXPECT_EQ(us, 50);
  }
}

TEST(Waiting, OthersGetATurnAmongFewYieldsAndOneBetweenSleeps) {
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  Waiting waiting(sleeper, WaitMode::automatic, kTimeoutNs);
  waiting.serve_others();
  int yields = 0;
  int turns = 0;
  for (; sleeper.slept_us.empty(); ++yields) {
    turns += waiting.is_turn_of_others() ? 1 : 0;
    waiting.pause([](void*) { return true; }, nullptr);
  }
  EXPECT_GT(turns, yields / 5);
  EXPECT_LT(turns, yields / 3);
  for (std::size_t sleep = 2; sleep < 100; ++sleep) {
    EXPECT_TRUE(waiting.is_turn_of_others());
    waiting.pause([](void*) { return true; }, nullptr);
    EXPECT_EQ(sleeper.slept_us.size(), sleep) << "a sleep, not a yield";
  }
}

TEST(Waiting, AMarkIsSetFromTheFirstSleepUntilSomethingMoves) {
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  {
    Waiting waiting(sleeper, WaitMode::sleep, kTimeoutNs);
    for (int wait = 0; wait < 2; ++wait) {
      for (sleeper.slept_us.clear(); sleeper.slept_us.size() < 3;) {
        waiting.pause([](void*) { return true; }, nullptr);
        EXPECT_EQ(sleeper.sleeping, sleeper.slept_us.empty() ? 0U : 1U);
      }
      if (wait == 0) waiting.moved();
    }
    EXPECT_EQ(sleeper.sleeping, 1U);
  }
  EXPECT_EQ(sleeper.sleeping, 0U) << "the wait is over";
}

TEST(Waiting, SleepsAnEighthOfTheQuietTimeWhereANetworkWakesIt) {
  Sleeper sleeper({.name = "network", .wakes_on_put = true});
  Waiting waiting(sleeper, WaitMode::sleep, kTimeoutNs);
  wait_quietly(waiting, 1000);
  ASSERT_FALSE(sleeper.slept_us.empty());
  EXPECT_EQ(sleeper.slept_us.front(), 1000);
  for (const int us : sleeper.slept_us) {
    EXPECT_GE(us, 1000);
    EXPECT_LE(us, 100'000);
  }
  EXPECT_EQ(sleeper.slept_us.back(), 100'000);
  EXPECT_LT(sleeper.slept_us.size(), 120U) << "not the 600 of a millisecond each";
  waiting.moved();
  sleeper.slept_us.clear();
  wait_quietly(waiting, 2);
  ASSERT_FALSE(sleeper.slept_us.empty());
  EXPECT_EQ(sleeper.slept_us.front(), 1000) << "what moved may move again soon";
}

TEST(Waiting, PollsLittleWhereAPollIsASystemCallAndOthersWantTheCpu) {
  Sleeper sleeper({.name = "network", .wakes_on_put = true});
  Sleeper beside({.name = "mapped", .mapped = true, .wakes_on_put = true});
  const auto polls = [](Sleeper& transport) {
    Waiting waiting(transport, WaitMode::automatic, kTimeoutNs);
    int count = 0;
    for (; transport.slept_us.empty(); ++count) waiting.pause([](void*) { return true; }, nullptr);
    return count;
  };
  EXPECT_LT(polls(sleeper), 32);
  EXPECT_GT(polls(beside), 200);
}

TEST(Waiting, SharedPollsLittleThoughThereIsACpuForEveryRank) {
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  sleeper.shares_cpus = false;
  const auto polls = [&](WaitMode mode) {
    Waiting waiting(sleeper, mode, kTimeoutNs);
    int count = 0;
    for (sleeper.slept_us.clear(); sleeper.slept_us.empty(); ++count) {
      waiting.pause([](void*) { return true; }, nullptr);
    }
    return count;
  };
  EXPECT_GT(polls(WaitMode::automatic), 10'000);
  EXPECT_LT(polls(WaitMode::shared), 300);
}

bool stays_idle(void*) { return true; }

/// Pauses so often, and counts how often it was time for checks.
int pauses(Waiting& waiting, std::int64_t count) {
  int checks = 0;
  for (std::int64_t i = 0; i < count; ++i) checks += waiting.pause(stays_idle, nullptr) ? 1 : 0;
  return checks;
}

TEST(Waiting, WhoPollsLooksAtTheClockForEver) {
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  Waiting waiting(sleeper, WaitMode::automatic, kTimeoutNs);
  // A count of 32 bits ends after 4 billion polls; the full run makes so many.
  const std::int64_t before = tests::is_full() ? std::int64_t{1} << 32 : 100'000;
  for (std::int64_t i = 0; i < before; ++i) (void)waiting.poll();
  int checks = 0;
  // On a busy machine this thread may hardly run for a while.
  const std::int64_t end_ns = now_ns() + 5000 * kMs;
  while (checks <= 5 && now_ns() < end_ns) checks += waiting.poll() ? 1 : 0;
  EXPECT_GT(checks, 5);
}

TEST(Waiting, WhoSpinsOrYieldsLooksAtTheClockForEver) {
  for (const WaitMode mode : {WaitMode::spin, WaitMode::yield}) {
    Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
    Waiting waiting(sleeper, mode, kTimeoutNs);
    // Several rounds of the count.
    pauses(waiting, 4 * std::int64_t{Waiting::kPollsMost});
    int checks = 0;
    const std::int64_t end_ns = now_ns() + 5000 * kMs;
    while (checks <= 5 && now_ns() < end_ns) checks += waiting.pause(stays_idle, nullptr) ? 1 : 0;
    EXPECT_GT(checks, 5);
    EXPECT_TRUE(sleeper.slept_us.empty()) << "and never sleeps";
  }
}

TEST(Waiting, OthersGetATurnSeldomWhileItPollsAndBeforeEverySleep) {
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  sleeper.shares_cpus = false;
  Waiting waiting(sleeper, WaitMode::automatic, kTimeoutNs);
  int polls = 0;
  int turns = 0;
  while (sleeper.slept_us.empty()) {
    const bool turn = waiting.is_turn_of_others();
    turns += turn ? 1 : 0;
    ++polls;
    waiting.pause(stays_idle, nullptr);
    EXPECT_TRUE(turn || sleeper.slept_us.empty()) << "before the first sleep";
  }
  EXPECT_GT(polls, 20'000);
  EXPECT_GT(turns, polls / 100);
  EXPECT_LT(turns, polls / 50);
  for (int sleep = 0; sleep < 3; ++sleep) {
    EXPECT_TRUE(waiting.is_turn_of_others());
    waiting.pause(stays_idle, nullptr);
  }
  waiting.moved();
  EXPECT_FALSE(waiting.is_turn_of_others());
  Waiting spinning(sleeper, WaitMode::spin, kTimeoutNs);
  turns = 0;
  for (polls = 0; polls < 64'000; ++polls) {
    turns += spinning.is_turn_of_others() ? 1 : 0;
    spinning.pause(stays_idle, nullptr);
  }
  EXPECT_EQ(turns, 1000);
}

/// The waits are those of the transport's clock, whatever the machine does.
TEST(Waiting, TellsTheTransportSeldomHowLongItHasWaited) {
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  sleeper.shares_cpus = false;
  sleeper.clock = 0;
  Waiting waiting(sleeper, WaitMode::automatic, kTimeoutNs);
  // Two looks at the clock: a wait this short tells nothing.
  pauses(waiting, 2047);
  EXPECT_TRUE(sleeper.noted_ns.empty());
  for (int wait = 0; wait < 2; ++wait) {
    pauses(waiting, 22'000);  // polls and yields
    ASSERT_GT(sleeper.noted_ns.size(), 3U);
    EXPECT_EQ(sleeper.noted_ns[0], 30'000) << "where it waits";
    EXPECT_EQ(sleeper.noted_ns[1], 120'000) << "it has waited for long";
    EXPECT_EQ(sleeper.noted_ns[2], 1'140'000) << "and for another millisecond";
    waiting.moved();
    sleeper.noted_ns.clear();
  }
}

TEST(Waiting, TellsNothingWhereRanksOutnumberCpus) {
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  sleeper.clock = 0;
  Waiting waiting(sleeper, WaitMode::spin, kTimeoutNs);
  pauses(waiting, 100'000);
  EXPECT_TRUE(sleeper.noted_ns.empty());
}

TEST(Waiting, TellsWhoPollsWithoutPauses) {
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  sleeper.shares_cpus = false;
  for (const bool is_away : {false, true}) {
    sleeper.clock = 0;
    sleeper.ns_per_look = is_away ? 2 * kMs : 30'000;
    sleeper.noted_ns.clear();
    Waiting waiting(sleeper, WaitMode::automatic, kTimeoutNs);
    for (int i = 0; i < 10'000; ++i) (void)waiting.poll();
    EXPECT_EQ(sleeper.noted_ns.empty(), is_away) << "the caller computes between its polls";
    for (const std::int64_t ns : sleeper.noted_ns) EXPECT_EQ(ns, 0) << "it holds its team, and must not hop";
  }
}

TEST(Waiting, ATimeInWhichTheProcessDidNotRunIsNotWaiting) {
  constexpr std::int64_t kShortNs = 160 * kMs;
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  Waiting waiting(sleeper, WaitMode::sleep, kShortNs);
  wait_quietly(waiting, 20);
  EXPECT_FALSE(waiting.is_over());
  EXPECT_EQ(waiting.resumed_ns(), 0);
  const std::int64_t stopped_ns = now_ns();
  sleeper.late_us = 300'000;
  EXPECT_FALSE(waiting.pause(stays_idle, nullptr)) << "peers' puts are looked at before any check";
  EXPECT_FALSE(waiting.is_over());
  EXPECT_GE(waiting.resumed_ns(), stopped_ns + 300 * kMs);
  EXPECT_EQ(waiting.attentive_ns(), 0);
  EXPECT_LT(waiting.quiet_ns(), 100 * kMs);
  bool checks = false;
  for (int i = 0; i < 10 && !checks; ++i) checks = waiting.pause(stays_idle, nullptr);
  EXPECT_TRUE(checks);
  EXPECT_GT(waiting.attentive_ns(), 0);
  const std::int64_t end_ns = now_ns() + 20'000 * kMs;
  while (!waiting.is_over() && now_ns() < end_ns) waiting.pause(stays_idle, nullptr);
  EXPECT_TRUE(waiting.is_over()) << "who waits in vain still ends";
}

TEST(Waiting, ACpuThatIsAlwaysLateEndsNoChecks) {
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  Waiting waiting(sleeper, WaitMode::sleep, 80 * kMs);
  int checks = 0;
  int sleeps = 0;
  for (; !waiting.is_over() && sleeps < 1000; ++sleeps) {
    sleeper.late_us = 20'000;
    checks += waiting.pause(stays_idle, nullptr) ? 1 : 0;
  }
  EXPECT_TRUE(waiting.is_over());
  EXPECT_LT(sleeps, 400);
  EXPECT_GT(checks, 2);
}

TEST(Waiting, WhoPollsRarelyIsStillToldAndTimedOut) {
  constexpr std::int64_t kShortNs = 64 * kMs;
  Sleeper sleeper({.name = "mapped", .mapped = true, .wakes_on_put = true});
  Waiting waiting(sleeper, WaitMode::automatic, kShortNs);
  int checks = 0;
  int polls = 0;
  const timespec away = {0, 10 * kMs};
  for (; !waiting.is_over() && polls < 1000; ++polls) {
    nanosleep(&away, nullptr);
    checks += waiting.poll() ? 1 : 0;
  }
  EXPECT_TRUE(waiting.is_over());
  // The first look is at poll 32. From then on each poll looks, and counts a sixteenth of the timeout at most.
  EXPECT_GE(polls, 32 + 16);
  EXPECT_LT(polls, 32 + 24);
  EXPECT_GE(checks, 16);
}

TEST(Deadline, CountsStepsAndNoLongerThanTheWaiterMeantToBeAway) {
  constexpr std::int64_t kSecond = 1000 * kMs;
  Deadline deadline(32 * kSecond, 0);
  EXPECT_EQ(deadline.slack_ns(), kSecond);
  EXPECT_TRUE(deadline.look(0, kSecond / 2));
  EXPECT_EQ(deadline.waited_ns(), kSecond / 2);
  EXPECT_FALSE(deadline.look(0, 3600 * kSecond)) << "stopped for an hour";
  EXPECT_EQ(deadline.waited_ns(), kSecond * 3 / 2);
  EXPECT_TRUE(deadline.look(4 * kSecond, 3605 * kSecond)) << "a sleep of four seconds";
  EXPECT_EQ(deadline.waited_ns(), kSecond * 13 / 2);
  EXPECT_TRUE(deadline.look(0, 3604 * kSecond)) << "a clock of another machine after a move";
  EXPECT_EQ(deadline.waited_ns(), kSecond * 13 / 2);
  EXPECT_FALSE(deadline.has_passed());
  for (int second = 0; second < 26; ++second) (void)deadline.look(0, (3605 + second) * kSecond);
  EXPECT_TRUE(deadline.has_passed());
  deadline.restart(0);
  EXPECT_EQ(deadline.waited_ns(), 0);
  EXPECT_FALSE(deadline.has_passed());
}

TEST(Deadline, NapsAreNoLongerThanWhatIsLeftOrTheSlack) {
  Deadline deadline(32'000 * kMs, 0);
  EXPECT_EQ(deadline.nap_ms(5000), 1000);
  EXPECT_EQ(deadline.nap_ms(200), 200);
  (void)deadline.look(32'000 * kMs, 31'999 * kMs + 1);
  EXPECT_EQ(deadline.nap_ms(200), 1);
  (void)deadline.look(0, 32'500 * kMs);
  EXPECT_EQ(deadline.nap_ms(200), 1);
  EXPECT_TRUE(deadline.has_passed());
  EXPECT_EQ(Deadline(160 * kMs, 0).nap_ms(1000), 10);
}

TEST(Deadline, IsOverInTime) {
  Deadline deadline(100 * kMs);
  const std::int64_t begun_ns = now_ns();
  const timespec nap = {0, kMs};
  while (!deadline.is_over()) nanosleep(&nap, nullptr);
  EXPECT_GE(now_ns() - begun_ns, 100 * kMs);
  EXPECT_LT(now_ns() - begun_ns, 10'000 * kMs);
}

}  // namespace
}  // namespace torii
