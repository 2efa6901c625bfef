// SPDX-License-Identifier: Apache-2.0
// Which ranks part, and which stay: on a machine in memory.
#include "transports/shared_memory/cpu_hints.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/base/platform.hpp"

namespace torii::shared_memory {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kBrief = 30'000;  ///< a wait that tells the CPU and does not hop

/// Says on which CPU the thread is, and moves it to the lowest one that is free.
class Machine final : public Platform {
 public:
  Machine() { set_platform(this); }
  ~Machine() override { set_platform(nullptr); }
  int cpu() noexcept override { return on; }
  Hop hop(const CpuSet& taken) noexcept override {
    ++hops;
    std::exchange(meanwhile, [] {})();
    for (int cpu = 0; answer == Hop::made && cpu < cpus; ++cpu) {
      if (taken.has(cpu)) continue;
      if (moves) on = cpu;
      return Hop::made;
    }
    return answer == Hop::made ? Hop::not_made : answer;
  }

  int cpus = 2;
  int on = 0;
  int hops = 0;  ///< attempts
  Hop answer = Hop::made;
  bool moves = true;  ///< else its numbers say nothing, or a thread comes back at once
  std::function<void()> meanwhile = [] {};
};

/// The ranks of a node.
class Node {
 public:
  /// Ranks from `may_not_hop` on have the setting HOP=0.
  explicit Node(std::size_t ranks, std::size_t may_not_hop = SIZE_MAX) : words_(ranks), counters_(ranks) {
    std::vector<std::atomic<std::uint64_t>*> words;
    for (auto& word : words_) words.push_back(&word);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      hints_.emplace_back(words, rank, rank < may_not_hop, counters_[rank]);
    }
  }
  /// The rank has waited for so long at that time, and is on that CPU. Returns the CPU on which it is afterwards.
  int wait(std::size_t rank, int cpu, std::int64_t waited_ns, std::int64_t now_ns) {
    machine.on = cpu;
    hints_[rank].note_wait(waited_ns, now_ns);
    return machine.on;
  }
  std::uint64_t hops(std::size_t rank) const { return counters_[rank].hops.load(); }
  int told(std::size_t rank) const { return CpuHint::cpu(words_[rank].load()); }

  Machine machine;

 private:
  std::deque<std::atomic<std::uint64_t>> words_;
  std::deque<Counters> counters_;
  std::deque<CpuHints> hints_;
};

TEST(CpuHints, OneOfTwoRanksOnOneCpuHops) {
  Node node(2);
  EXPECT_EQ(node.wait(0, 0, kMs, kMs), 0) << "nobody has been seen here";
  EXPECT_EQ(node.wait(1, 0, kMs, 2 * kMs), 1);
  EXPECT_EQ(node.hops(1), 1U);
  EXPECT_EQ(node.told(1), 1);
  EXPECT_EQ(node.wait(0, 0, kMs, 100 * kMs), 0) << "the other one has gone";
  EXPECT_EQ(node.hops(0), 0U);
}

/// The first one has left its CPU, and waits for its turn on the other one.
TEST(CpuHints, TheOtherOneStaysWhileTheFirstOneHops) {
  Node node(2);
  node.wait(0, 0, kBrief, kMs);
  node.machine.meanwhile = [&] {
    EXPECT_EQ(node.told(1), CpuHint::kNowhere);
    EXPECT_EQ(node.wait(0, 0, kMs, 2 * kMs), 0);
    EXPECT_EQ(node.machine.hops, 1);
  };
  EXPECT_EQ(node.wait(1, 0, kMs, 2 * kMs), 1);
  EXPECT_EQ(node.told(1), 1);
}

TEST(CpuHints, AShortWaitOnlyTells) {
  Node node(2);
  node.wait(0, 0, kBrief, kMs);
  EXPECT_EQ(node.told(0), 0);
  EXPECT_EQ(node.wait(1, 0, 90'000, kMs), 0);
  EXPECT_EQ(node.machine.hops, 0);
  EXPECT_EQ(node.wait(1, 0, 100'000, kMs), 1);
}

TEST(CpuHints, RanksOnTheirOwnCpusStay) {
  Node node(2);
  for (std::int64_t ms = 1; ms < 1000; ++ms) {
    node.wait(0, 0, kMs, ms * kMs);
    node.wait(1, 1, kMs, ms * kMs);
  }
  EXPECT_EQ(node.machine.hops, 0);
}

TEST(CpuHints, WhoWasHereLongAgoMayHaveMoved) {
  Node node(2);
  node.wait(0, 0, kBrief, kMs);
  EXPECT_EQ(node.wait(1, 0, kMs, 200 * kMs), 0);
  EXPECT_EQ(node.machine.hops, 0);
  node.wait(0, 0, kBrief, 250 * kMs);
  EXPECT_EQ(node.wait(1, 0, kMs, 300 * kMs), 1);
}

TEST(CpuHints, NobodyHopsToWhereAnotherRankWasSeen) {
  Node node(4);
  node.machine.cpus = 4;
  node.wait(0, 2, kBrief, kMs);
  node.wait(1, 0, kBrief, 1000 * kMs);
  node.wait(2, 1, kBrief, 1000 * kMs);
  EXPECT_EQ(node.wait(3, 1, kMs, 1000 * kMs), 3) << "2 was seen long ago, and counts";
  EXPECT_EQ(node.wait(3, 1, kMs, 2000 * kMs), 1) << "nobody was seen here lately";
  node.wait(1, 0, kBrief, 6000 * kMs);
  node.wait(2, 1, kBrief, 6000 * kMs);
  EXPECT_EQ(node.wait(3, 1, kMs, 6000 * kMs), 2) << "who was there so long ago may be dead";
}

TEST(CpuHints, ARankLooksRarely) {
  Node node(2);
  node.machine.answer = Hop::not_made;
  for (std::int64_t us = 0; us < 100'000; us += 50) {
    node.wait(0, 0, kBrief, us * 1000);
    node.wait(1, 0, kMs, us * 1000);
  }
  EXPECT_EQ(node.machine.hops, 20) << "once in 5 ms";
  EXPECT_EQ(node.hops(1), 0U);
}

TEST(CpuHints, WhereAHopIsImpossibleNobodyTriesAgain) {
  Node node(2);
  node.machine.answer = Hop::impossible;
  for (std::int64_t ms = 1; ms < 1000; ++ms) {
    node.wait(0, 0, kBrief, ms * kMs);
    EXPECT_EQ(node.wait(1, 0, kMs, ms * kMs), 0);
  }
  EXPECT_EQ(node.machine.hops, 1);
  EXPECT_EQ(node.hops(1), 0U);
  EXPECT_EQ(node.told(1), 0);
}

/// As in gVisor, where the number belongs to the thread; and once by chance.
TEST(CpuHints, WhoIsOftenWhereItWasHopsNoMore) {
  Node node(2);
  node.machine.moves = false;
  const auto wait_for = [&node](std::int64_t first_ms, std::int64_t end_ms) {
    for (std::int64_t ms = first_ms; ms < end_ms; ++ms) {
      node.wait(0, 0, kBrief, ms * kMs);
      node.wait(1, 0, kMs, ms * kMs);
    }
  };
  wait_for(1000, 1001);
  EXPECT_EQ(node.machine.hops, 1);
  EXPECT_EQ(node.hops(1), 0U);
  node.machine.moves = true;
  wait_for(2000, 2001);
  EXPECT_EQ(node.hops(1), 1U);
  node.machine.moves = false;
  wait_for(3000, 20'000);
  EXPECT_EQ(node.machine.hops, 5) << "three in a row";
  EXPECT_EQ(node.hops(1), 1U);
  EXPECT_EQ(node.told(1), 0);
}

/// Somebody brings them together again at once, such as the kernel or a helper on the CPU of a caller.
TEST(CpuHints, RanksThatMeetAgainAndAgainHopEverMoreRarely) {
  Node node(2);
  const auto meet_for = [&node](std::int64_t first_ms, std::int64_t end_ms) {
    for (std::int64_t ms = first_ms; ms < end_ms; ++ms) {
      node.wait(0, 0, kBrief, ms * kMs);
      node.wait(1, 0, kMs, ms * kMs);
    }
  };
  meet_for(1000, 1006);
  EXPECT_EQ(node.hops(1), 2U);
  meet_for(1006, 3000);
  EXPECT_LE(node.hops(1), 10U) << "5 ms, doubled up to a second";
  const std::uint64_t before = node.hops(1);
  EXPECT_GE(before, 8U);
  meet_for(3000, 13'000);
  EXPECT_LE(node.hops(1), before + 10) << "once a second";
  EXPECT_GE(node.hops(1), before + 8);
  const std::uint64_t later = node.hops(1);
  meet_for(16'000, 16'006);
  EXPECT_EQ(node.hops(1), later + 2) << "after a quiet second";
}

TEST(CpuHints, WhoMayNotHopTellsItsCpuAllTheSame) {
  Node node(2, 1);
  node.wait(0, 0, kMs, kMs);
  EXPECT_EQ(node.wait(1, 0, kMs, kMs), 0);
  EXPECT_EQ(node.machine.hops, 0);
  EXPECT_EQ(node.told(1), 0);
  EXPECT_EQ(node.wait(0, 0, kMs, 7 * kMs), 1);
}

/// A helper, or a caller that tests, while another thread of its rank waits elsewhere.
TEST(CpuHints, WhoDoesNotWaitLeavesAloneWhatWasJustTold) {
  Node node(2);
  node.wait(0, 1, kBrief, 1000 * kMs);
  node.wait(0, 0, 0, 1004 * kMs);
  EXPECT_EQ(node.told(0), 1);
  node.wait(0, 0, 0, 1006 * kMs);
  EXPECT_EQ(node.told(0), 0);
  node.wait(1, 0, 0, 1006 * kMs);
  EXPECT_EQ(node.machine.hops, 0) << "nor does it hop";
}

TEST(CpuHints, AMachineWithoutCpuNumbersTellsNothing) {
  Node node(2);
  node.wait(0, -1, kMs, kMs);
  EXPECT_EQ(node.told(0), -1);
  node.wait(1, -1, kMs, kMs);
  EXPECT_EQ(node.machine.hops, 0);
}

TEST(CpuHint, HoldsNumberAndTime) {
  for (const std::int64_t now_ns : {std::int64_t{0}, 123'456'789'012'345, -5 * kMs}) {
    for (const int cpu : {0, 1, 8191}) {
      const std::uint64_t hint = CpuHint::made(cpu, now_ns);
      EXPECT_NE(hint, 0U);
      EXPECT_EQ(CpuHint::cpu(hint), cpu);
      EXPECT_LE(CpuHint::seen_ns(hint), now_ns);
      EXPECT_GT(CpuHint::seen_ns(hint), now_ns - 100'000);
    }
  }
}

}  // namespace
}  // namespace torii::shared_memory
