// SPDX-License-Identifier: Apache-2.0
// The cost model of lanes between sites against figures worked out by hand and measured ones; sites of trees.
#include <gtest/gtest.h>

#include <numeric>

#include "collectives/building/lanes_model.hpp"
#include "collectives/building/sites.hpp"
#include "tests/collectives/algorithms/cluster_trees.hpp"

namespace torii::tests {
namespace {

/// 16 ranks at each of two sites, 8 ms apart, 100 kB for each rank, 1 Gbit/s within a site.
LongLink sixteen(double window_bytes, double capacity) {
  return {16, 16, 1e5, 8e-3, window_bytes, capacity, 125e6, {}};
}

/// The critical path of the algorithm of Chiba, Endo and Matsuoka (docs/algorithms/multilane.md): the root
/// hands the other heads their shares one after the other, each lane carries its share across, and the head there hands
/// it on, all of them whole messages.
double papers_time_s(const LongLink& link, int lanes) {
  const double inside_s = link.bytes / link.site_rate;
  const double across_s = link.bytes / stream_rate(link, lanes);
  double longest_s = (link.root_ranks - 1) * inside_s;
  double handed_s = 0;  // the root keeps its own share
  bool is_own = true;
  for (const int share : lane_shares(link.ranks, lanes)) {
    if (!is_own) handed_s += share * inside_s;
    is_own = false;
    longest_s = std::max(longest_s, handed_s + link.latency_s + share * (across_s + inside_s));
  }
  return longest_s;
}

int papers_lanes(const LongLink& link) {
  int best = 1;
  for (int lanes = 2; lanes <= link.ranks; ++lanes) {
    if (papers_time_s(link, lanes) < papers_time_s(link, best) * (1 - 1e-9)) best = lanes;
  }
  return best;
}

/// The figures of the paper's form, and beside them the model by which torii chooses.
TEST(Lanes, TimesOfTwoSites) {
  const LongLink narrow = sixteen(64e3, 125e6);
  EXPECT_NEAR(1e3 * papers_time_s(narrow, 1), 420.8, 0.05);
  EXPECT_NEAR(1e3 * papers_time_s(narrow, 16), 45.8, 0.05);
  EXPECT_EQ(papers_lanes(narrow), 16);
  EXPECT_EQ(choose_lanes(narrow).lanes, 16);
  const LongLink slow = sixteen(64e3, 12.5e6);
  EXPECT_EQ(papers_lanes(slow), 4);
  EXPECT_NEAR(1e3 * papers_time_s(slow, 4), 148.8, 0.05);
  EXPECT_NEAR(1e3 * lanes_time_s(slow, 4), 138.6, 1);
  const LongLink wide = sixteen(256e3, 125e6);
  EXPECT_EQ(papers_lanes(wide), 7);
  EXPECT_NEAR(1e3 * papers_time_s(wide, 7), 32.5, 0.05);
  EXPECT_NEAR(1e3 * lanes_time_s(wide, 8), 26.8, 0.5);
}

/// A scatter of 100 kB per rank between two sites of 8 ranks in the laboratory (400 Mbit/s, windows of 64 KiB, 8.2 ms):
/// what one of P streams carried, and what the scatter took (perf/results/2026-11-22-sites-400.json).
TEST(Lanes, TheModelKeepsToWhatWasMeasured) {
  struct Measured {
    int lanes;
    double rate;
    double time_ms;
  };
  for (const Measured& one :
       {Measured{1, 2.75e6, 328.6}, {2, 2.72e6, 139.6}, {4, 2.66e6, 74.5}, {6, 2.74e6, 71.3}, {8, 2.72e6, 38.7}}) {
    LongLink link = {8, 8, 1e5, 8.2e-3, 65536, 8 * one.rate, 119.6e6};
    link.rates.assign(8, one.rate);
    link.segment_bytes = 25024;
    EXPECT_NEAR(1e3 * lanes_time_s(link, one.lanes) / one.time_ms, 1, 0.15) << one.lanes;
  }
}

/// Within a window a message takes the latency and the link's rate; a long one the stream's rate; a stream that fills
/// the link both. Nowhere do more bytes take less.
TEST(Lanes, StreamsStartAWindowAhead) {
  LongLink link = sixteen(64e3, 125e6);
  EXPECT_NEAR(crossing_s(link, 1, 1000), 8e-3 + 1000 / 125e6, 1e-9);
  EXPECT_NEAR(crossing_s(link, 1, 4e6), 1 + 8e-3 * 4 / 125, 1e-9);
  link.capacity = 2e6;
  EXPECT_NEAR(crossing_s(link, 1, 4e6), 2 + 8e-3, 1e-9);
  for (int lanes = 1; lanes <= 16; ++lanes) {
    for (double bytes = 100; bytes < 1e6; bytes *= 1.3) {
      EXPECT_LT(crossing_s(link, lanes, bytes), crossing_s(link, lanes, 1.3 * bytes));
    }
  }
}

/// 1 MB to 8 + 8 ranks: over one stream of 4 MB/s 250 ms, over eight 31 ms and a little; then back.
TEST(Lanes, WholeVectorsAreShared) {
  LongLink link = {8, 8, 0, 8e-3, 64e3, 125e6, 125e6};
  link.segment_bytes = 16e3;
  EXPECT_NEAR(1e3 * spread_time_s(link, 1, 1e6, 1), 250, 2);
  EXPECT_NEAR(1e3 * spread_time_s(link, 8, 1e6, 1), 33.6, 0.5);
  EXPECT_NEAR(1e3 * allreduce_time_s(link, 8, 1e6, 1), 41.8, 0.7);
  // By one lane the head hands the whole vector to seven ranks: the cable of the head is the bound, not the stream.
  link.window_bytes = 4e6;
  EXPECT_NEAR(1e3 * spread_time_s(link, 1, 1e6, 1), 64 + 8, 1);
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
  EXPECT_GT(lanes_time_s(link, 1), 0.5);
  // Where the last stream was as fast as the first, the link was not full.
  link.capacity = 5e6;
  EXPECT_DOUBLE_EQ(full_rate(link), 2 * 2 * 2.7875e6);
  link.rates = {2.8375e6, 2.5e6};
  EXPECT_DOUBLE_EQ(full_rate(link), 5e6);
}

TEST(Lanes, SeveralSitesShareTheRootsSite) {
  const std::vector<LongLink> near = {sixteen(64e3, 125e6), sixteen(64e3, 125e6)};
  const std::vector<LaneChoice> choices = choose_lanes(near, 125e6);
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].lanes, 8) << "16 ranks for two sites";
  EXPECT_EQ(choices[1].lanes, 8);
  // The farther site gets more lanes than the nearer one.
  std::vector<LongLink> far = near;
  far[1].latency_s = 32e-3;
  const std::vector<LaneChoice> uneven = choose_lanes(far, 125e6);
  ASSERT_EQ(uneven.size(), 2u);
  EXPECT_GT(uneven[1].lanes, uneven[0].lanes);
  EXPECT_LE(uneven[0].lanes + uneven[1].lanes, 16);
  // No room for two streams.
  EXPECT_TRUE(choose_lanes(near, 5e6).empty());
  EXPECT_TRUE(choose_lanes(std::vector<LongLink>{}, 1).empty());
}

TEST(Sites, AreWhatLongLinksLeave) {
  const TreeTopology tree = sites_tree({3, 2, 1});
  const Sites sites = sites_of(tree);
  EXPECT_EQ(sites.ranks, (std::vector<std::vector<int>>{{0, 1, 2}, {3, 4}, {5}}));
  EXPECT_EQ(sites.of_rank, (std::vector<int>{0, 0, 0, 1, 1, 2}));
  const SiteWay way = way_between(tree, sites, 2, 0);
  EXPECT_EQ(way.from, "switch2");
  EXPECT_EQ(way.to, "switch0");
  EXPECT_DOUBLE_EQ(way.latency_s, 8e-3);
  EXPECT_DOUBLE_EQ(way.capacity, 12.5e6);
  EXPECT_DOUBLE_EQ(way.site_rate, 125e6);
  // Parts keep the names; ranks are numbered anew.
  const TreeTopology part = tree.part(std::vector<int>{4, 1});
  EXPECT_EQ(way_between(part, sites_of(part), 0, 1).from, "switch1");
  EXPECT_EQ(sites_of(TreeTopology::star(4)).ranks.size(), 1u);
}

/// An alltoall of 8 + 8 ranks in the laboratory, 400 and 100 Mbit/s: what it took, with so many messages under way from
/// each rank (on a machine that had other work; the least of 5).
TEST(Lanes, TheModelOfAlltoallsKeepsToWhatWasMeasured) {
  struct Measured {
    double capacity;
    double bytes;
    int in_flight;
    double time_ms;
  };
  for (const Measured& one : {Measured{50e6, 1e5, 1, 408.5},
                              {50e6, 1e5, 2, 253.9},
                              {50e6, 1e5, 4, 202.9},
                              {50e6, 1e4, 1, 135.7},
                              {50e6, 1e4, 2, 70.9},
                              {50e6, 1e4, 4, 37.8},
                              {12.5e6, 1e5, 1, 683.8},
                              {12.5e6, 1e5, 2, 604.2},
                              {12.5e6, 1e5, 4, 600.7},
                              {12.5e6, 1e4, 2, 85.0},
                              {12.5e6, 1e4, 4, 73.3},
                              {12.5e6, 1e4, 8, 67.5}}) {
    LongLink link = {8, 8, one.bytes, 8.2e-3, 2 * 8.2e-3 * 2.72e6, one.capacity, 119.6e6};
    EXPECT_NEAR(1e3 * alltoall_time_s(std::span(&link, 1), one.in_flight) / one.time_ms, 1, 0.4)
        << one.capacity << ' ' << one.bytes << ' ' << one.in_flight;
  }
}

}  // namespace
}  // namespace torii::tests
