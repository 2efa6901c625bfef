// SPDX-License-Identifier: Apache-2.0
// The plans of multilane, proved and run in random order, and when the model of lanes between sites chooses it.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectives/building/floyd_model.hpp"
#include "collectives/building/sites.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/schedules/schedule.hpp"
#include "collectives/selection/selection.hpp"
#include "runtime/plan/ring_rules.hpp"
#include "tests/collectives/algorithms/cluster_trees.hpp"
#include "tests/support/test_run.hpp"
#include "tests/support/verify_run.hpp"

namespace torii::tests {
namespace {

PlanRequest request_on(const TreeTopology& tree, Collective collective, int root, int lanes = 0) {
  PlanRequest request = {collective, Topology::of_tree(tree, "sites"), root, Determinism::run, false, {}};
  request.tuning = {4096, 4, 2, false};
  request.tuning.lanes.fill(static_cast<std::uint8_t>(lanes));
  return request;
}

/// Every size of two and three small sites, every root, every number of lanes.
TEST(Multilane, EveryPlanIsProved) {
  const Algorithm& multilane = *find_algorithm("multilane");
  const std::vector<Seed> seeds = seeds_of("lanes_test", 1);
  std::uint64_t number = 0;
  for (const std::vector<int>& sizes :
       {std::vector<int>{1, 1}, {1, 4}, {4, 1}, {3, 3}, {2, 5}, {2, 1, 3}, {1, 2, 2, 1}}) {
    const TreeTopology tree = sites_tree(sizes);
    for (const Collective collective : {Collective::broadcast, Collective::reduce, Collective::allreduce,
                                        Collective::scatter, Collective::gather, Collective::alltoall}) {
      for (int root = 0; root < (has_root(collective) ? tree.ranks() : 1); ++root) {
        for (int lanes = 0; lanes <= 3; ++lanes) {
          const PlanRequest request = request_on(tree, collective, root, lanes);
          ASSERT_EQ(multilane.why_not(request), "");
          ExpressionPool pool;
          const Verdict verdict = verify(multilane, request, pool);
          ASSERT_TRUE(verdict.ok()) << name(collective) << " root " << root << " lanes " << lanes << ": "
                                    << verdict.faults.front();
          ++number;
          for (const Seed& seed : seeds) {
            const RandomRun run = {seed.value + number, 3, 2};
            if (run.seed % 5 != 0) continue;
            ASSERT_EQ(run_randomly(request, plan_all(multilane, request), verdict.result_expression, pool, run), "")
                << seed;
          }
        }
      }
    }
  }
}

/// However many ranks one site has and the others lack.
TEST(Multilane, FewStreamsJoinTwoRanks) {
  const Algorithm& multilane = *find_algorithm("multilane");
  int most = 0;
  for (const std::vector<int>& sizes : {std::vector<int>{64, 2},
                                        {2, 64},
                                        {64, 1},
                                        {1, 64},
                                        {24, 24},
                                        {17, 3, 1},
                                        {3, 40, 1},
                                        std::vector<int>(16, 1),
                                        std::vector<int>(16, 5)}) {
    const TreeTopology tree = sites_tree(sizes);
    for (const Collective collective :
         {Collective::broadcast, Collective::reduce, Collective::allreduce, Collective::scatter, Collective::gather}) {
      for (const int root : {0, tree.ranks() - 1}) {
        for (const int lanes : {0, 255}) {
          if (!has_root(collective) && root != 0) continue;
          const PlanRequest request = request_on(tree, collective, root, lanes);
          int streams = 0;
          for (const Plan& plan : plan_all(multilane, request)) streams = std::max(streams, rings_of(plan));
          most = std::max(most, streams);
          EXPECT_LE(streams, pair_streams_most(multilane, request, multilane.plan(request, root)))
              << name(collective) << " root " << root << " lanes " << lanes << " on " << tree.text();
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(most, 8);
}

/// Between which ranks the plans cross a long link.
std::set<std::pair<int, int>> crossings(const PlanRequest& request) {
  const Sites sites = sites_of(*request.topology.tree());
  std::set<std::pair<int, int>> pairs;
  for (const Plan& plan : plan_all(*find_algorithm("multilane"), request)) {
    for (const Stream& stream : plan.out) {
      const auto site = [&](int rank) { return sites.of_rank[static_cast<std::size_t>(rank)]; };
      if (site(plan.rank) != site(stream.peer)) pairs.emplace(plan.rank, stream.peer);
    }
  }
  return pairs;
}

/// Each lane joins two heads of its own; the root is the first head.
TEST(Multilane, LanesJoinPairsOfHeads) {
  const TreeTopology tree = sites_tree({4, 5});
  using Pairs = std::set<std::pair<int, int>>;
  EXPECT_EQ(crossings(request_on(tree, Collective::scatter, 2, 1)), (Pairs{{2, 4}}));
  EXPECT_EQ(crossings(request_on(tree, Collective::scatter, 2, 3)), (Pairs{{2, 4}, {3, 6}, {0, 8}}));
  EXPECT_EQ(crossings(request_on(tree, Collective::gather, 2, 3)), (Pairs{{4, 2}, {6, 3}, {8, 0}}));
  EXPECT_EQ(crossings(request_on(tree, Collective::scatter, 2, 0)).size(), 4u);
  EXPECT_EQ(crossings(request_on(tree, Collective::scatter, 2, 9)).size(), 4u) << "no more than the smaller site has";
}

/// Trees of whole vectors cross between the same heads: both ways in an allreduce, one way with a root. A smaller site
/// has fewer heads, and they take turns.
TEST(Multilane, SharesCrossBetweenPairsOfHeads) {
  const TreeTopology tree = sites_tree({4, 5});
  using Pairs = std::set<std::pair<int, int>>;
  EXPECT_EQ(crossings(request_on(tree, Collective::broadcast, 2, 3)), (Pairs{{2, 4}, {3, 5}, {0, 6}}));
  EXPECT_EQ(crossings(request_on(tree, Collective::reduce, 2, 1)), (Pairs{{4, 2}}));
  EXPECT_EQ(crossings(request_on(tree, Collective::allreduce, 0, 2)), (Pairs{{0, 4}, {4, 0}, {1, 5}, {5, 1}}));
  EXPECT_EQ(crossings(request_on(tree, Collective::broadcast, 2, 0)), (Pairs{{2, 4}, {3, 5}, {0, 6}, {1, 7}, {2, 8}}));
}

TEST(Multilane, CanonicalOrderIsRefusedWhereItCombines) {
  PlanRequest request = request_on(sites_tree({2, 2}), Collective::allreduce, 0);
  request.determinism = Determinism::canonical;
  EXPECT_NE(find_algorithm("multilane")->why_not(request).find("in an order of its own"), std::string::npos);
  request.collective = Collective::broadcast;
  EXPECT_EQ(find_algorithm("multilane")->why_not(request), "");
}

TEST(Multilane, OneSiteIsRefusedWithAReason) {
  const Algorithm& multilane = *find_algorithm("multilane");
  const std::string reason = multilane.why_not(request_on(TreeTopology::star(3), Collective::scatter, 0));
  EXPECT_NE(reason.find("multilane is for 2 to 16 sites"), std::string::npos) << reason;
  EXPECT_NE(reason.find("tree:sites has 1"), std::string::npos) << reason;
  EXPECT_NE(multilane.why_not(request_on(sites_tree(std::vector<int>(17, 1)), Collective::gather, 0)).find("has 17"),
            std::string::npos);
  EXPECT_NE(multilane.why_not(request_on(sites_tree({1, 1}), Collective::scan, 0)).find("scatter, gather; not"),
            std::string::npos);
}

constexpr const char* kStreams =
    R"({"version": 1, "rows": "built-in", "streams": [{"from": "switch0", "to": "switch1",
        "rates": [2838000, 2838000, 2838000, 2790000, 2300000, 1950000, 1660000, 1460000]}]})";

TEST(Multilane, TheModelChoosesLanes) {
  const TreeTopology tree = sites_tree({8, 8});
  PlanRequest request = request_on(tree, Collective::scatter, 0);
  const std::size_t bytes = 16 * 98'304;
  const TuneTable table = TuneTable::parse(kStreams, "test");
  ASSERT_EQ(table.streams().size(), 1u);
  EXPECT_EQ(table.rows().size(), TuneTable::built_in().rows().size());
  const Selected selected = select(table, {}, request, bytes);
  EXPECT_EQ(selected.algorithm->name, "multilane");
  EXPECT_EQ(selected.request.tuning.lanes[1], 8);
  EXPECT_NE(selected.explanation.find("lanes 8, 7"), std::string::npos) << selected.explanation;
  // Rates of the way back serve where none else are known; a gather goes there.
  request.collective = Collective::gather;
  EXPECT_EQ(select(table, {}, request, bytes).request.tuning.lanes[1], 8);
  // A wider line takes all lanes that there are, and several sites share them.
  request.topology = Topology::of_tree(sites_tree({8, 8}, "50MB/s 50MB/s"), "wide");
  EXPECT_EQ(select(TuneTable::built_in(), {}, request, bytes).request.tuning.lanes[1], 8);
  request.topology = Topology::of_tree(sites_tree({4, 4, 4}, "50MB/s 50MB/s"), "three");
  const SiteLanes lanes = select(TuneTable::built_in(), {}, request, bytes).request.tuning.lanes;
  EXPECT_EQ(lanes[1] + lanes[2], 4);
  // More sites than the root's has ranks.
  request.topology = Topology::of_tree(sites_tree({1, 2, 2}), "small");
  EXPECT_EQ(select(TuneTable::built_in(), {}, request, bytes).request.tuning.lanes[1], 1);
}

/// Long vectors between sites go over lanes. Short ones with a root cross once: a schedule would cross for every
/// rank, and wait each time to be told. Others go by what the table says.
TEST(Multilane, ServesLongVectors) {
  PlanRequest request = request_on(sites_tree({8, 8}, "50MB/s 50MB/s"), Collective::broadcast, 3);
  for (const Collective collective : {Collective::broadcast, Collective::reduce, Collective::allreduce}) {
    request.collective = collective;
    request.root = has_root(collective) ? 3 : 0;
    const Selected selected = select(TuneTable::built_in(), {}, request, 1'000'000);
    EXPECT_EQ(selected.algorithm->name, "multilane") << name(collective);
    EXPECT_EQ(selected.request.tuning.lanes[0], 8) << selected.explanation;
    EXPECT_TRUE(selected.explanation.starts_with("by the model of lanes between sites: lanes 8, "))
        << selected.explanation;
    EXPECT_NE(select(TuneTable::built_in(), {}, request, 64).algorithm->name, "multilane") << name(collective);
    // Where a hop inside a site takes time a chain through all ranks is long, and one lane is enough.
    PlanRequest brief = request;
    brief.topology = Topology::of_tree(sites_tree({8, 8}, "50MB/s 50MB/s", "100us"), "hosts");
    const Selected one = select(TuneTable::built_in(), {}, brief, 64);
    EXPECT_EQ(one.algorithm->name == "multilane", has_root(collective)) << name(collective) << one.explanation;
    EXPECT_EQ(one.request.tuning.lanes[1], has_root(collective) ? 1 : 0) << one.explanation;
    // No long link, no lanes.
    PlanRequest near = request;
    near.topology = Topology::of_tree(star_of(16), "star");
    EXPECT_NE(select(TuneTable::built_in(), {}, near, 1'000'000).algorithm->name, "multilane");
    // Canonical orders are not those of lanes.
    near = request;
    near.determinism = Determinism::canonical;
    if (combines(collective)) {
      EXPECT_NE(select(TuneTable::built_in(), {}, near, 1'000'000).algorithm->name, "multilane");
    }
  }
  // A rank has streams with most others, so segments shrink as ranks grow in number.
  request.topology = Topology::of_tree(sites_tree({64, 64}, "500MB/s 500MB/s"), "large");
  const Selected large = select(TuneTable::built_in(), {.algorithm = "multilane"}, request, 1'000'000'000);
  EXPECT_EQ(large.request.tuning.segment_bytes, 4096u);
  request.topology = Topology::of_tree(sites_tree({8, 8}), "small");
  const Selected forced = select(TuneTable::built_in(), {.algorithm = "multilane"}, request, 64);
  EXPECT_EQ(forced.request.tuning.lanes[1], 1) << "a short vector needs one lane: " << forced.explanation;
}

/// More segments are under way in a round trip than an int counts.
TEST(Sites, AChainOverAnEndlessLinkHasAllSlots) {
  const std::string ways = "1000000GB/s 1000000GB/s 1000s 1000s full";
  const TreeTopology tree = TreeTopology::parse("node a comm\nnode b comm\nlink a b " + ways + "\n", "far");
  const PlanRequest request = request_on(tree, Collective::broadcast, 0);
  EXPECT_EQ(find_algorithm("chain")->estimate({.plan = request, .bytes = 1'000'000}).tuning.slots, 256);
}

/// The schedule of least time sends to all ranks beyond the link from this side, which takes a round trip for each.
TEST(Sites, TokensOverLongLinksAreCounted) {
  PlanRequest request = request_on(sites_tree({4, 4}), Collective::broadcast, 0);
  const auto estimate_of = [&](const char* name) {
    return find_algorithm(name)->estimate({.plan = request, .bytes = 128});
  };
  const CostEstimate far = estimate_of("scheduled");
  const CostEstimate chain = estimate_of("chain");
  EXPECT_LT(chain.seconds, far.seconds);
  const auto schedule = kept_schedule(request.topology, 0, 128, false);
  EXPECT_LT(schedule->time_s, chain.seconds) << "without tokens the schedule would be the quicker one";
  EXPECT_NE(far.why.find(", with tokens "), std::string::npos) << far.why;
  // Inside a site they are not.
  request.topology = Topology::of_tree(star_of(8), "star");
  const CostEstimate near = estimate_of("scheduled");
  EXPECT_LT(near.seconds, estimate_of("chain").seconds);
  EXPECT_NEAR(near.seconds, kept_schedule(request.topology, 0, 128, false)->time_s, 1e-9);
  EXPECT_EQ(near.why.find("tokens"), std::string::npos) << near.why;
  const Selected selected = select(TuneTable::built_in(), {}, request, 128);
  EXPECT_EQ(selected.algorithm->name, "scheduled");
  EXPECT_NE(selected.explanation.find(" (proven least); chain 0."), std::string::npos) << selected.explanation;
}

/// A single stream that fills the link needs no lanes, but slots for what a round trip holds.
TEST(Multilane, LeavesAFullLinkToTheChain) {
  const PlanRequest request = request_on(sites_tree({4, 4}), Collective::broadcast, 0);
  const TuneTable table = TuneTable::parse(
      R"({"version": 1, "rows": "built-in",
          "streams": [{"from": "switch0", "to": "switch1", "rates": [12500000, 6250000]}]})",
      "test");
  const Selected selected = select(table, {}, request, 4'000'000);
  EXPECT_EQ(selected.algorithm->name, "chain");
  const Tuning& tuning = selected.request.tuning;
  EXPECT_GE(static_cast<double>(tuning.segment_bytes) * tuning.slots, 12.5e6 * 16e-3);
  PlanRequest near = request;
  near.topology = Topology::of_tree(star_of(8), "star");
  EXPECT_EQ(select(table, {}, near, 4'000'000).request.tuning.slots, 8);
}

TEST(Multilane, IsForLongBlocks) {
  const PlanRequest request = request_on(sites_tree({4, 4}), Collective::scatter, 0);
  EXPECT_NE(select(TuneTable::built_in(), {}, request, 8 * 1000).algorithm->name, "multilane");
  EXPECT_EQ(select(TuneTable::built_in(), {}, request, 8 * 4000).algorithm->name, "multilane");
  // Nobody knows unequal lengths yet: as many lanes as for long blocks.
  const Selected unequal = select(TuneTable::built_in(), {}, request, SIZE_MAX);
  EXPECT_EQ(unequal.algorithm->name, "multilane");
  EXPECT_EQ(unequal.request.tuning.lanes[1],
            select(TuneTable::built_in(), {}, request, 8 << 20).request.tuning.lanes[1]);
  EXPECT_NE(unequal.explanation.find(" ms as if all blocks had 1 MiB"), std::string::npos) << unequal.explanation;
  const TuneTable table = TuneTable::parse(
      R"({"version": 1, "rows": [{"collective": "scatter", "topology": "tree", "ranks": [1, 64], "bytes_max": null,
          "algorithm": "multilane", "segment": 4096, "slots": 8, "window": 4, "lanes": 3}]})",
      "test");
  const Selected selected = select(table, {}, request, 8 * 1000);
  EXPECT_EQ(selected.algorithm->name, "multilane");
  EXPECT_EQ(selected.request.tuning.lanes[1], 3);
  EXPECT_TRUE(
      selected.explanation.starts_with("by the row, with the time of the model of lanes between sites: lanes 3, "))
      << selected.explanation;
}

/// A round between sites takes a long link's latency, four of them as much as 16 ranks need for everything at once.
TEST(Sites, ShortAlltoallsMakeNoRounds) {
  PlanRequest request = request_on(sites_tree({8, 8}), Collective::alltoall, 0);
  EXPECT_DOUBLE_EQ(floyd_cost(request.topology, 2).latency_s, 8e-3);
  EXPECT_EQ(select(TuneTable::built_in(), {}, request, 16 * 8, true).algorithm->name, "direct");
  EXPECT_DOUBLE_EQ(floyd_cost(Topology::of_tree(sites_tree({1, 2, 3}), "three"), 2).latency_s, 8e-3);
  request.topology = Topology::of_tree(star_of(16), "star");
  EXPECT_EQ(select(TuneTable::built_in(), {}, request, 16 * 8, true).algorithm->name, "floyd");
}

/// Long blocks of an alltoall by multilane have as many streams as fill the link; short ones go all at once.
TEST(Multilane, AlltoallHasNoMoreStreamsThanFillTheLink) {
  PlanRequest request = request_on(sites_tree({8, 8}, "50MB/s 50MB/s"), Collective::alltoall, 0);
  const auto in_flight = [&](std::size_t block) {
    EXPECT_EQ(select(TuneTable::built_in(), {}, request, 16 * block, true).algorithm->name, "direct");
    const Selected selected = select(TuneTable::built_in(), {.algorithm = "multilane"}, request, 16 * block, true);
    EXPECT_TRUE(selected.explanation.starts_with("by the model of lanes between sites: ")) << selected.explanation;
    EXPECT_EQ(selected.algorithm->plan(selected.request, 3).exchange.in_flight, selected.request.tuning.window);
    return selected.request.tuning.window;
  };
  EXPECT_EQ(in_flight(100'000), 4);
  EXPECT_EQ(in_flight(10'000), 8);
  EXPECT_LT(in_flight(1'000'000), 4);
  request.topology = Topology::of_tree(sites_tree({6, 6, 4}, "50MB/s 50MB/s"), "three");
  EXPECT_LE(in_flight(100'000), 4);
  EXPECT_EQ(select(TuneTable::built_in(), {}, request, SIZE_MAX, true).algorithm->name, "direct");
}

TEST(Multilane, BadStreamsAreNamed) {
  const auto fault = [](const std::string& entry) {
    try {
      (void)TuneTable::parse(R"({"version": 1, "rows": "built-in", "streams": )" + entry + "}", "FILE");
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_EQ(fault("[]"), "taken");
  for (const auto& [entry, text] :
       {std::pair("{}", "\"streams\" must be an array"), std::pair("[3]", "FILE, streams 0: streams must be objects"),
        std::pair(R"([{"to": "b", "rates": [1]}])", "\"from\" must be a string"),
        std::pair(R"([{"from": "a", "to": "b"}])", "\"rates\" must be a list"),
        std::pair(R"([{"from": "a", "to": "b", "rates": []}])", "must be a list"),
        std::pair(R"([{"from": "a", "to": "b", "rates": [5, 0]}])", "a rate is 0;"),
        std::pair(R"([{"from": "a", "to": "b", "rates": ["x"]}])", "a rate is \"x\";")}) {
    EXPECT_NE(fault(entry).find(text), std::string::npos) << entry << ": " << fault(entry);
  }
  EXPECT_THROW((void)TuneTable::parse(R"({"version": 1, "rows": "other"})", "FILE"), std::exception);
}

}  // namespace
}  // namespace torii::tests
