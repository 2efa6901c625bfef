// SPDX-License-Identifier: Apache-2.0
// The memory of sends and receives in teams that come and go: it is used again, and no team sees an old message.
#include <gtest/gtest.h>
#include <torii/torii.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/platform.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// Counts the memory that is asked for teams of two ranks: about 0.4 MiB, as nothing else.
class TeamsAsked final : public Platform {
 public:
  TeamsAsked() { set_platform(this); }
  ~TeamsAsked() override { set_platform(nullptr); }
  bool grants(std::size_t bytes) noexcept override {
    if (bytes > std::size_t{256} << 10 && bytes < std::size_t{512} << 10) ++teams;
    return true;
  }
  std::atomic<int> teams = 0;
};

/// To the next rank, from the last one.
void pass_on(torii_team* team, std::size_t count, std::int32_t seed) {
  const int ranks = torii_team_ranks(team);
  const int rank = torii_team_rank(team);
  const auto value = [&](int of, std::size_t i) { return seed * 1000 + of * 100 + static_cast<std::int32_t>(i % 97); };
  std::vector<std::int32_t> sent(count);
  std::vector<std::int32_t> got(count);
  std::vector<std::int32_t> right(count);
  const int last = (rank + ranks - 1) % ranks;
  for (std::size_t i = 0; i < count; ++i) {
    sent[i] = value(rank, i);
    right[i] = value(last, i);
  }
  ASSERT_EQ(torii_group_begin(team), TORII_OK);  // long sends wait for their receivers
  ASSERT_EQ(torii_send(team, sent.data(), count, TORII_I32, (rank + 1) % ranks, 0), TORII_OK) << torii_last_error();
  ASSERT_EQ(torii_recv(team, got.data(), count, TORII_I32, last, 0, nullptr), TORII_OK) << torii_last_error();
  ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
  ASSERT_EQ(got, right);
}

/// The parts of a team have its memory and divide it in another way. The last message of each pair stays there.
void run_teams(torii_team* whole, int teams, const std::vector<std::size_t>& counts, const std::vector<int>& parts) {
  const int rank = torii_team_rank(whole);
  for (int number = 0; number < teams; ++number) {
    torii_team* team = nullptr;
    const int color = rank % parts[static_cast<std::size_t>(number) % parts.size()];
    ASSERT_EQ(torii_team_split(whole, color, 0, nullptr, &team), TORII_OK) << torii_last_error();
    for (int round = 0; round < 5; ++round) {
      for (const std::size_t count : counts) pass_on(team, count, number);
    }
    const int next = (torii_team_rank(team) + 1) % torii_team_ranks(team);
    ASSERT_EQ(torii_send(team, &number, 1, TORII_I32, next, 0), TORII_OK) << torii_last_error();
    ASSERT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
    ASSERT_EQ(torii_team_destroy(team), TORII_OK);
    ASSERT_EQ(torii_barrier(whole), TORII_OK) << torii_last_error();
  }
}

ThreadTeam pairs_job(int ranks) {
  ThreadTeam all;
  all.ranks = ranks;
  all.settings = "ARENA=1G\nTIMEOUT=60";
  return all;
}

constexpr std::size_t kInLine = 10;      // fits into a line
constexpr std::size_t kBeyondLine = 11;  // does not
constexpr std::size_t kInPlace = 4000;   // nearly fills a place
constexpr std::size_t kInParts = 20000;  // goes in parts, or is read where it is

TEST(PairMemory, NoTeamSeesAnOldMessage) {
  run_as_threads(pairs_job(4), [](torii_context*, torii_team* whole) {
    run_teams(whole, 12, {kInLine, kBeyondLine, kInPlace, kInParts}, {1, 2, 2, 1, 4});
  });
}

TEST(PairMemory, IsUsedAgain) {
  for (const std::size_t count : {kInLine, kInPlace}) {
    TeamsAsked machine;
    run_as_threads(pairs_job(2), [&](torii_context*, torii_team* whole) {
      run_teams(whole, 10, {count}, {1});
      const int teams = machine.teams;
      EXPECT_GT(teams, 0);
      ASSERT_EQ(torii_barrier(whole), TORII_OK);
      run_teams(whole, 30, {count}, {1});
      EXPECT_EQ(machine.teams, teams) << count;
    });
  }
}

}  // namespace
}  // namespace torii::tests
