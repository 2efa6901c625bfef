// SPDX-License-Identifier: Apache-2.0
// HOP: ranks that wait for each other on one CPU part, keep their affinity, and get the right results.
#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

cpu_set_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  return set;
}

void set_affinity(const cpu_set_t& set) { EXPECT_EQ(sched_setaffinity(0, sizeof(set), &set), 0); }

/// Puts the calling thread on a CPU, and lets it run on all of `set`: it stays until the kernel or a hop moves it.
void go_to(unsigned cpu, const cpu_set_t& set) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  set_affinity(one);
  set_affinity(set);
}

unsigned first_of(const cpu_set_t& set) {
  unsigned cpu = 0;
  while (!CPU_ISSET(cpu, &set)) ++cpu;
  return cpu;
}

std::uint64_t hops_of(torii_context* context) {
  torii_counters counters{};
  counters.size = sizeof(counters);
  EXPECT_EQ(torii_context_counters(context, &counters), TORII_OK) << torii_last_error();
  return counters.hops;
}

/// What a rank does again and again; all kinds wait for the other rank.
enum class Kind : std::uint8_t { collective, send, started, persistent };

torii_call sum_of(std::int64_t& value) {
  torii_call call{};
  call.size = sizeof(call);
  call.collective = TORII_ALLREDUCE;
  call.input = call.result = &value;
  call.count = 1;
  call.type = TORII_I64;
  call.op = TORII_SUM;
  return call;
}

/// The sum over both ranks.
std::int64_t add_up(Kind kind, torii_team* team, std::int64_t mine) {
  const int rank = torii_team_rank(team);
  std::int64_t theirs = 0;
  torii_request* request = nullptr;
  switch (kind) {
    case Kind::collective:
      EXPECT_EQ(torii_allreduce(team, &mine, &mine, 1, TORII_I64, TORII_SUM), TORII_OK) << torii_last_error();
      return mine;
    case Kind::send:
      if (rank == 0) {
        EXPECT_EQ(torii_send(team, &mine, 1, TORII_I64, 1, 1), TORII_OK) << torii_last_error();
      }
      EXPECT_EQ(torii_recv(team, &theirs, 1, TORII_I64, 1 - rank, 1, nullptr), TORII_OK) << torii_last_error();
      if (rank == 1) {
        EXPECT_EQ(torii_send(team, &mine, 1, TORII_I64, 0, 1), TORII_OK) << torii_last_error();
      }
      return mine + theirs;
    case Kind::started: {
      const torii_call call = sum_of(mine);
      EXPECT_EQ(torii_start(team, &call, &request), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
      return mine;
    }
    case Kind::persistent: {
      const torii_call call = sum_of(mine);
      EXPECT_EQ(torii_prepare(team, &call, &request), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_restart(request), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_request_free(&request), TORII_OK) << torii_last_error();
      return mine;
    }
  }
  return 0;
}

/// Brings both ranks to one CPU `rounds` times, or until one of them has hopped, and has them wait for each other.
/// Returns the hops of both.
std::uint64_t part(torii_context* context, torii_team* team, Kind kind, int rounds) {
  const cpu_set_t before = affinity();
  std::int64_t hops = 0;
  for (int round = 0; round < rounds && hops == 0; ++round) {
    go_to(first_of(before), before);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    for (std::int64_t is_over = 0; is_over != 2;) {
      is_over = add_up(kind, team, std::chrono::steady_clock::now() > end ? 1 : 0);
      EXPECT_GE(is_over, 0);
      EXPECT_LE(is_over, 2);
    }
    const cpu_set_t after = affinity();
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
    hops = add_up(Kind::collective, team, static_cast<std::int64_t>(hops_of(context)));
  }
  return static_cast<std::uint64_t>(hops);
}

ThreadTeam two_ranks(const std::string& settings) {
  ThreadTeam ranks;
  ranks.ranks = 2;
  ranks.settings = "ARENA=1G\nTIMEOUT=60\n" + settings;
  return ranks;
}

constexpr int kRoundsMost = 500;

class HopOf : public testing::TestWithParam<Kind> {};

TEST_P(HopOf, RanksOnOneCpuPart) {
  const cpu_set_t mine = affinity();
  if (CPU_COUNT(&mine) < 2) GTEST_SKIP() << "there is one CPU, on which ranks stay";
  run_as_threads(two_ranks(""), [](torii_context* context, torii_team* team) {
    EXPECT_GT(part(context, team, GetParam(), kRoundsMost), 0U);
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, HopOf, testing::Values(Kind::collective, Kind::send, Kind::started, Kind::persistent));

/// Rank 1 computes while its progress thread waits for a message, on the CPU on which rank 0 waits for rank 1.
TEST(Hop, LeavesTheCpuOfAProgressThread) {
  const cpu_set_t mine = affinity();
  if (CPU_COUNT(&mine) < 2) GTEST_SKIP() << "there is one CPU, on which ranks stay";
  const unsigned first = first_of(mine);
  const std::string settings = "HELPERS=1\nHELPER_CPUS=" + std::to_string(first);
  run_as_threads(two_ranks(settings), [&](torii_context* context, torii_team* team) {
    std::int64_t hops = 0;
    for (int round = 0; round < kRoundsMost && hops == 0; ++round) {
      std::int64_t value = 0;
      if (torii_team_rank(team) == 0) {
        go_to(first, mine);
        EXPECT_EQ(torii_recv(team, &value, 1, TORII_I64, 1, 1, nullptr), TORII_OK) << torii_last_error();
        EXPECT_EQ(torii_send(team, &value, 1, TORII_I64, 1, 2), TORII_OK) << torii_last_error();
      } else {
        torii_request* request = nullptr;
        // What this thread has told of itself comes first for some milliseconds.
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_EQ(torii_start_recv(team, &value, 1, TORII_I64, 0, 2, nullptr, &request), TORII_OK)
            << torii_last_error();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_EQ(torii_send(team, &value, 1, TORII_I64, 0, 1), TORII_OK) << torii_last_error();
        EXPECT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
      }
      hops = add_up(Kind::collective, team, static_cast<std::int64_t>(hops_of(context)));
    }
    EXPECT_GT(hops, 0);
  });
}

TEST(Hop, IsNotMadeWhereTheSettingForbidsIt) {
  run_as_threads(two_ranks("HOP=0"), [](torii_context* context, torii_team* team) {
    EXPECT_EQ(part(context, team, Kind::collective, 5), 0U);
  });
}

TEST(Hop, IsNotMadeWhereRanksOutnumberCpus) {
  const cpu_set_t before = affinity();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first_of(before), &one);
  set_affinity(one);  // threads made from now on have it too
  run_as_threads(two_ranks(""), [&](torii_context* context, torii_team* team) {
    set_affinity(before);
    EXPECT_EQ(part(context, team, Kind::collective, 5), 0U);
  });
  set_affinity(before);
}

}  // namespace
}  // namespace torii::tests
