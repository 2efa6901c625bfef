// SPDX-License-Identifier: Apache-2.0
// Histories under faults: every one ends as it should, and the same seed gives the same history.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/base/status.hpp"
#include "tools/torii-sim/faults/campaign.hpp"

namespace torii::faults {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kHistories = 300;
#else
constexpr std::uint64_t kHistories = 10'000;
#endif

TEST(Faults, EveryHistoryEndsWithTheRightBitsOrACause) {
  Campaign campaign;
  campaign.first = 1;
  campaign.last = kHistories;
  if (std::getenv("TORII_TEST_FULL") != nullptr) campaign.last *= 100;
  const Tally tally = run(campaign, [](const Tally&) {});
  for (const Failure& failure : tally.failures) {
    ADD_FAILURE() << "torii-sim faults --replay " << failure.seed << "\n" << failure.text;
  }
  std::printf("%llu histories, %llu calls ok, %llu failed with a cause, %llu points, %.1f h of virtual time\n",
              static_cast<unsigned long long>(tally.counts.histories), static_cast<unsigned long long>(tally.counts.calls),
              static_cast<unsigned long long>(tally.counts.failed_calls), static_cast<unsigned long long>(tally.counts.points),
              static_cast<double>(tally.counts.virtual_ns) / 3600e9);
  for (const auto& [kind, count] : tally.faults)
    std::printf("%s: %llu\n", kind.c_str(), static_cast<unsigned long long>(count));
  for (const auto& [phase, count] : tally.deaths) {
    std::printf("deaths while %s: %llu\n", phase.c_str(), static_cast<unsigned long long>(count));
  }
  // Every kind of fault and every phase of a team's life has been there.
  for (const char* const kind : {"dies", "stops", "loses engine", "loses, unnoticed, engine"}) {
    EXPECT_NE(tally.faults.count(kind), 0U) << kind;
  }
  for (const char* const phase : {"joining", "making the team", "splitting", "calling", "choosing survivors"}) {
    EXPECT_NE(tally.deaths.count(phase), 0U) << phase;
  }
}

TEST(Faults, SameSeedSameHistory) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const History history = draw_history(seed);
    const Replay first = replay(history);
    const Replay again = replay(history);
    EXPECT_NE(first.digest, 0U) << "seed " << seed << "\n" << first.failure;
    EXPECT_EQ(first.digest, again.digest) << "seed " << seed;
    EXPECT_EQ(first.failure, again.failure) << "seed " << seed;
  }
}

TEST(Faults, PartsOfAHistoryAreNamed) {
  History history = draw_history(1);
  leave_out(history, "s0");
  EXPECT_TRUE(history.steps[0].is_left_out);
  for (const char* const names : {"s999", "x1", "s", "f99", "s0,"}) {
    EXPECT_THROW(leave_out(history, names), Error) << names;
  }
}

}  // namespace
}  // namespace torii::faults
