// SPDX-License-Identifier: Apache-2.0
// Which ranks part, and which stay: on a machine in memory.
#include "transports/shared_memory/cpu_hints.hpp"

#include <gtest/gtest.h>

#include <array>
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
      on = cpu;
      return Hop::made;
    }
    return answer == Hop::made ? Hop::not_made : answer;
  }

  int cpus = 2;
  int on = 0;
  int hops = 0;  ///< attempts
  Hop answer = Hop::made;
  std::function<void()> meanwhile = [] {};
};

/// The ranks of a node.
class Node {
 public:
  explicit Node(std::size_t ranks) : words_(ranks), counters_(ranks) {
    std::vector<std::atomic<std::uint64_t>*> words;
    for (auto& word : words_) words.push_back(&word);
    for (std::size_t rank = 0; rank < ranks; ++rank) hints_.emplace_back(words, rank, counters_[rank]);
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
  node.wait(0, 0, 0, kMs);
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
  node.wait(0, 0, 0, kMs);
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
  node.wait(0, 0, 0, kMs);
  EXPECT_EQ(node.wait(1, 0, kMs, 200 * kMs), 0);
  EXPECT_EQ(node.machine.hops, 0);
  node.wait(0, 0, 0, 250 * kMs);
  EXPECT_EQ(node.wait(1, 0, kMs, 300 * kMs), 1);
}

TEST(CpuHints, NobodyHopsToWhereAnotherRankWasSeen) {
  Node node(4);
  node.machine.cpus = 4;
  node.wait(0, 2, 0, kMs);
  node.wait(1, 0, 0, 1000 * kMs);
  node.wait(2, 1, 0, 1000 * kMs);
  EXPECT_EQ(node.wait(3, 1, kMs, 1000 * kMs), 3) << "2 was seen long ago, and counts";
  EXPECT_EQ(node.wait(3, 1, kMs, 2000 * kMs), 1) << "nobody was seen here lately";
}

TEST(CpuHints, ARankLooksRarely) {
  Node node(2);
  node.machine.answer = Hop::not_made;
  for (std::int64_t us = 0; us < 100'000; us += 50) {
    node.wait(0, 0, 0, us * 1000);
    node.wait(1, 0, kMs, us * 1000);
  }
  EXPECT_EQ(node.machine.hops, 20) << "once in 5 ms";
  EXPECT_EQ(node.hops(1), 0U);
}

TEST(CpuHints, WhereAHopIsImpossibleNobodyTriesAgain) {
  Node node(2);
  node.machine.answer = Hop::impossible;
  for (std::int64_t ms = 1; ms < 1000; ++ms) {
    node.wait(0, 0, 0, ms * kMs);
    EXPECT_EQ(node.wait(1, 0, kMs, ms * kMs), 0);
  }
  EXPECT_EQ(node.machine.hops, 1);
  EXPECT_EQ(node.hops(1), 0U);
  EXPECT_EQ(node.told(1), 0);
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
