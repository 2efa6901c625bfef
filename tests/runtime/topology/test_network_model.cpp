// SPDX-License-Identifier: Apache-2.0
// Rates of flows by both kinds of sharing against definitions, and pairwise exchanges on virtual time against each
// other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "collectives/orders/exchange_lists.hpp"
#include "runtime/base/status.hpp"
#include "runtime/topology/network_model.hpp"
#include "runtime/topology/routing.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

using Uses = std::vector<LinkSharing::Use>;

TEST(LinkSharing, MinLosesWhatMaxminGivesToOthers) {
  // Flow 0 crosses links 0 and 1, flows 1 and 2 link 0 only, flow 3 link 1 only, flow 4 none.
  const std::vector<Uses> flows = {{{0, 1}, {1, 1}}, {{0, 1}}, {{0, 1}}, {{1, 1}}, {}};
  for (const Sharing kind : {Sharing::min, Sharing::maxmin}) {
    LinkSharing sharing(2, 5, kind);
    for (int flow = 0; flow < 5; ++flow) sharing.start(flow, flows[static_cast<std::size_t>(flow)]);
    EXPECT_EQ(sharing.settle().size(), 5U);
    for (const int flow : {0, 1, 2}) EXPECT_DOUBLE_EQ(sharing.rate(flow), 1.0 / 3);
    EXPECT_DOUBLE_EQ(sharing.rate(3), kind == Sharing::min ? 1.0 / 2 : 2.0 / 3);
    EXPECT_TRUE(std::isinf(sharing.rate(4)));
    EXPECT_EQ(sharing.most(0), 3);
    sharing.end(1);
    const auto changed = sharing.settle();
    EXPECT_EQ(std::count(changed.begin(), changed.end(), 3), kind == Sharing::min ? 0 : 1);
    EXPECT_DOUBLE_EQ(sharing.rate(0), 0.5);
    EXPECT_DOUBLE_EQ(sharing.rate(3), 0.5);
    EXPECT_EQ(sharing.most(0), 3);
  }
}

/// After many random starts and ends the rates are what a fresh object works out, and what the definitions say: by min
/// the least share, by maxmin no link is over-full and every flow has a full link on which none is quicker.
void expect_definitions(std::mt19937_64 random) {
  constexpr int kLinks = 12;
  constexpr int kFlows = 20;
  std::vector<double> bandwidths(kLinks, 1);
  for (const Sharing kind : {Sharing::min, Sharing::maxmin, Sharing::min, Sharing::maxmin}) {
    LinkSharing sharing(kLinks, kFlows, kind, bandwidths);
    std::vector<Uses> active(kFlows);
    for (int step = 0; step < 400; ++step) {
      const auto flow = static_cast<std::size_t>(random() % kFlows);
      if (!active[flow].empty()) {
        sharing.end(static_cast<int>(flow));
        active[flow].clear();
      } else {
        for (int link = 0; link < kLinks; ++link) {
          if (random() % 4 == 0) active[flow].push_back({link, 1 + static_cast<int>(random() % 3)});
        }
        if (active[flow].empty()) active[flow].push_back({0, 1});
        sharing.start(static_cast<int>(flow), active[flow]);
      }
      if (random() % 3 == 0) continue;
      static_cast<void>(sharing.settle());
      std::vector<double> used(kLinks, 0);
      std::vector<double> quickest(kLinks, 0);
      std::vector<int> loads(kLinks, 0);
      for (std::size_t f = 0; f < active.size(); ++f) {
        for (const LinkSharing::Use& use : active[f]) {
          const auto link = static_cast<std::size_t>(use.link);
          const double rate = sharing.rate(static_cast<int>(f));
          used[link] += rate * use.times;
          quickest[link] = std::max(quickest[link], rate);
          loads[link] += use.times;
        }
      }
      for (std::size_t link = 0; link < kLinks; ++link) ASSERT_LE(used[link], bandwidths[link] * (1 + 1e-9));
      for (std::size_t f = 0; f < active.size(); ++f) {
        const double rate = sharing.rate(static_cast<int>(f));
        double share = std::numeric_limits<double>::infinity();
        bool is_held_back = false;
        for (const LinkSharing::Use& use : active[f]) {
          const auto link = static_cast<std::size_t>(use.link);
          share = std::min(share, bandwidths[link] / loads[link]);
          is_held_back |= used[link] > bandwidths[link] * (1 - 1e-9) && rate > quickest[link] - 1e-9;
        }
        if (active[f].empty()) continue;
        if (kind == Sharing::min) {
          ASSERT_DOUBLE_EQ(rate, share);
        } else {
          ASSERT_TRUE(is_held_back) << "step " << step << " flow " << f;
        }
      }
    }
    // The third and fourth time links differ.
    if (kind == Sharing::maxmin) {
      for (double& bandwidth : bandwidths) bandwidth = 0.5 + static_cast<double>(random() % 5);
    }
  }
}

TEST(LinkSharing, RandomFlowsKeepTheDefinitions) {
  for (const Seed& seed : seeds_of("exchange_times_test/link_sharing", 1)) {
    SCOPED_TRACE(seed);
    expect_definitions(std::mt19937_64(seed.value));
  }
}

ExchangeTimes run_exchange(const Topology& topology, ExchangeOrder order, const ExchangeRun& run, bool all_ranks) {
  ExchangeTraffic traffic = exchange_traffic(topology, exchange_list(order, topology));
  if (all_ranks) {
    traffic.period = topology.extents();
    traffic.mates_alike = false;
  }
  return simulate_exchange(topology, traffic, run);
}

TEST(NetworkExchange, OnePeriodStandsForAllRanks) {
  struct Case {
    const char* text;
    int ranks;
  };
  for (const auto& [text, ranks] : {Case{"torus:6x5", 30}, Case{"torus:8x4m", 32}, Case{"torus:4x3x2", 24},
                                    Case{"torus:3x3*2", 18}, Case{"torus:7", 7}, Case{"mesh:5x4", 20}}) {
    const Topology topology = Topology::parse(text, ranks);
    for (const ExchangeOrder order : {ExchangeOrder::a2a, ExchangeOrder::a2and, ExchangeOrder::a2at}) {
      for (const int controllers : {1, 3, 4}) {
        ExchangeRun run;
        run.controllers = controllers;
        const ExchangeTimes part = run_exchange(topology, order, run, false);
        const ExchangeTimes all = run_exchange(topology, order, run, true);
        EXPECT_NEAR(part.time, all.time, 1e-6) << text << " " << name(order) << " " << controllers;
        EXPECT_EQ(part.link_messages_most, all.link_messages_most) << text << " " << name(order);
        EXPECT_EQ(part.links_shared, all.links_shared) << text << " " << name(order);
        EXPECT_GE(all.time, alltoall_bound(topology) - 1e-6) << text;
      }
    }
  }
}

/// Messages over the busiest link, counted with the routes that plans are verified with.
TEST(NetworkExchange, WaysAreThoseOfRouting) {
  for (const Topology& topology :
       {Topology::torus({5, 7, 1}, {true, true, false}, 2), Topology::torus({4, 3, 5}, {false, true, true})}) {
    std::vector<LinkId> links;
    for (int from = 0; from < topology.ranks(); ++from) {
      for (int to = 0; to < topology.ranks(); ++to) append_route(topology, from, to, 0, links);
    }
    std::vector<int> messages(static_cast<std::size_t>(link_numbers(topology.nodes())), 0);
    for (const LinkId link : links) ++messages[static_cast<std::size_t>(link)];
    EXPECT_EQ(run_exchange(topology, ExchangeOrder::a2at, {}, true).link_messages_most,
              *std::max_element(messages.begin(), messages.end()))
        << topology.text();
  }
}

TEST(NetworkExchange, SkewAndJitterFollowTheSeed) {
  const Topology topology = Topology::torus({6, 6, 1}, {true, true, false}, 2);
  ExchangeRun run;
  const double still = run_exchange(topology, ExchangeOrder::a2at, run, false).time;
  run.skew = 0.3;
  run.jitter = 0.1;
  const double first = run_exchange(topology, ExchangeOrder::a2at, run, false).time;
  EXPECT_EQ(run_exchange(topology, ExchangeOrder::a2at, run, false).time, first);
  EXPECT_GT(first, still);
  run.seed = 2;
  EXPECT_NE(run_exchange(topology, ExchangeOrder::a2at, run, false).time, first);
}

TEST(NetworkExchange, BoundOfEveryKind) {
  EXPECT_EQ(alltoall_bound(Topology::torus({8, 8, 1}, {false, false, false}, 2)), 128);
  EXPECT_EQ(alltoall_bound(Topology::torus({8, 8, 1}, {true, true, false}, 2)), 64);
  EXPECT_EQ(alltoall_bound(Topology::torus({5, 3, 1}, {true, false, false}, 2)),
            10);  // 2 * 3 * 15 / 5 / 2 < 1 * 2 * 15 / 3
  EXPECT_EQ(alltoall_bound(Topology::torus({1, 1, 1})), 0);
  EXPECT_EQ(alltoall_bound(Topology::node(8)), 0);
}

TEST(NetworkExchange, RunsWithoutSenseAreRefused) {
  const Topology topology = Topology::torus({4, 4, 1}, {true, true, false}, 2);
  const auto message = [&](const ExchangeRun& run, Coordinates period) -> std::string {
    ExchangeTraffic traffic = exchange_traffic(topology, exchange_list(ExchangeOrder::a2at, topology));
    traffic.period = period;
    try {
      simulate_exchange(topology, traffic, run);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      return error.what();
    }
    return "";
  };
  ExchangeRun run;
  EXPECT_NE(message(run, {3, 1, 1}).find("period 3"), std::string::npos);
  run.controllers = 0;
  EXPECT_NE(message(run, {1, 1, 1}).find("0 controllers"), std::string::npos);
  run = {};
  run.skew = -1;
  EXPECT_NE(message(run, {1, 1, 1}).find("skew of -1"), std::string::npos);
  run = {};
  run.jitter = std::nan("");
  EXPECT_NE(message(run, {1, 1, 1}).find("jitter of"), std::string::npos);
  const Topology node = Topology::node(4);
  EXPECT_THROW(simulate_exchange(node, exchange_traffic(node, exchange_list(ExchangeOrder::a2a, node)), {}), Error);
}

}  // namespace
}  // namespace torii::tests
