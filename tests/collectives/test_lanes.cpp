// SPDX-License-Identifier: Apache-2.0
// The cost model of lanes between sites against figures worked out by hand, and its choices.
#include <gtest/gtest.h>

#include <numeric>

#include "collectives/lanes_model.hpp"

namespace torii::test {
namespace {

/// 16 ranks at each of two sites, 8 ms apart, 100 kB for each rank, 1 Gbit/s within a site.
LongLink sixteen(double window_bytes, double capacity) {
  return {16, 16, 1e5, 8e-3, window_bytes, capacity, 125e6, {}};
}

TEST(Lanes, TimesOfTwoSites) {
  const LongLink narrow = sixteen(64e3, 125e6);
  EXPECT_NEAR(1e3 * lanes_time_s(narrow, 1, false), 420.8, 0.05);
  EXPECT_NEAR(1e3 * lanes_time_s(narrow, 16, false), 45.8, 0.05);
  EXPECT_EQ(choose_lanes(narrow, false).lanes, 16);
  const LongLink slow = sixteen(64e3, 12.5e6);
  EXPECT_EQ(choose_lanes(slow, false).lanes, 4);
  EXPECT_NEAR(1e3 * choose_lanes(slow, false).time_s, 148.8, 0.05);
  EXPECT_NEAR(1e3 * lanes_time_s(slow, 4, true), 138.6, 1);
  const LongLink wide = sixteen(256e3, 125e6);
  EXPECT_EQ(choose_lanes(wide, false).lanes, 7);
  EXPECT_NEAR(1e3 * choose_lanes(wide, false).time_s, 32.5, 0.05);
  EXPECT_NEAR(1e3 * lanes_time_s(wide, 8, true), 26.8, 0.5);
}

/// The busiest lane has as many messages as it must: 9 lanes for 16 messages carry 2 at most.
TEST(Lanes, SharesAreEven) {
  EXPECT_EQ(lane_shares(16, 9), (std::vector<int>{2, 2, 2, 2, 2, 2, 2, 1, 1}));
  for (int messages = 1; messages < 40; ++messages) {
    for (int lanes = 1; lanes <= messages; ++lanes) {
      const std::vector<int> shares = lane_shares(messages, lanes);
      EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0), messages);
      EXPECT_EQ(shares.front(), (messages + lanes - 1) / lanes);
    }
  }
}

TEST(Lanes, MeasuredRatesComeBeforeTheModel) {
  LongLink link = sixteen(64e3, 125e6);
  EXPECT_DOUBLE_EQ(stream_rate(link, 1), 4e6);
  link.rates = {2.8375e6, 2.7875e6};
  EXPECT_DOUBLE_EQ(stream_rate(link, 2), 2.7875e6);
  EXPECT_DOUBLE_EQ(stream_rate(link, 3), 4e6);
  EXPECT_GT(lanes_time_s(link, 1, false), 0.5);
}

TEST(Lanes, SeveralSitesShareTheRootsSite) {
  const std::vector<LongLink> near = {sixteen(64e3, 125e6), sixteen(64e3, 125e6)};
  const std::vector<LaneChoice> choices = choose_lanes(near, 125e6, false);
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].lanes, 8) << "16 ranks for two sites";
  EXPECT_EQ(choices[1].lanes, 8);
  // The farther site gets more lanes than the nearer one.
  std::vector<LongLink> far = near;
  far[1].latency_s = 32e-3;
  const std::vector<LaneChoice> uneven = choose_lanes(far, 125e6, false);
  ASSERT_EQ(uneven.size(), 2u);
  EXPECT_GT(uneven[1].lanes, uneven[0].lanes);
  EXPECT_LE(uneven[0].lanes + uneven[1].lanes, 16);
  // No room for two streams.
  EXPECT_TRUE(choose_lanes(near, 5e6, false).empty());
  EXPECT_TRUE(choose_lanes(std::vector<LongLink>{}, 1, false).empty());
}

}  // namespace
}  // namespace torii::test
