// SPDX-License-Identifier: Apache-2.0
// Dimension-order routing and the figures of links that the verifier derives from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "collectives/proof/verify.hpp"
#include "runtime/topology/routing.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

std::vector<LinkId> route(const Topology& topology, int from, int to, int turn = 0, const Ties& ties = {}) {
  std::vector<LinkId> links;
  append_route(topology, from, to, turn, links, ties);
  return links;
}

Verdict verdict_on(const std::string& topology, int ranks, const char* algorithm, Collective collective) {
  PlanRequest request;
  request.collective = collective;
  request.topology = Topology::parse(topology, ranks);
  const Algorithm& row = *find_algorithm(algorithm);
  EXPECT_EQ(row.why_not(request), "");
  Verdict verdict = verify(row, request);
  EXPECT_TRUE(verdict.ok()) << algorithm << " on " << topology << ": " << verdict.faults.front();
  return verdict;
}

TEST(Routing, CountsLinks) {
  EXPECT_EQ(link_count(Topology::node(8)), 0);
  EXPECT_EQ(link_count(Topology::torus({4, 4, 4})), 6 * 64);
  EXPECT_EQ(link_count(Topology::torus({4, 1, 1}, {false, false, false})), 6);
  EXPECT_EQ(link_count(Topology::torus({2, 1, 1})), 4) << "an extent of 2 has two cables";
  EXPECT_EQ(link_count(Topology::torus({2, 1, 1}, {false, false, false})), 2);
}

TEST(Routing, GoesTheShorterWayInDimensionOrder) {
  const Topology torus = Topology::torus({5, 4, 3});
  EXPECT_EQ(route(torus, 0, 0), std::vector<LinkId>{});
  EXPECT_EQ(route(torus, 0, 2), (std::vector<LinkId>{link_id(0, 0, 1), link_id(1, 0, 1)}));
  EXPECT_EQ(route(torus, 0, 3), (std::vector<LinkId>{link_id(0, 0, -1), link_id(4, 0, -1)}));
  EXPECT_EQ(route(torus, 0, 6), (std::vector<LinkId>{link_id(0, 0, 1), link_id(1, 1, 1)}));
  EXPECT_EQ(route(torus, 0, torus.rank({0, 0, 2})), (std::vector<LinkId>{link_id(0, 2, -1)}));
}

TEST(Routing, MeshesDoNotWrap) {
  const Topology mesh = Topology::torus({5, 1, 1}, {false, false, false});
  EXPECT_EQ(route(mesh, 4, 0).size(), 4u);
  EXPECT_EQ(route(mesh, 0, 4).front(), link_id(0, 0, 1));
  EXPECT_TRUE(route(Topology::node(5), 0, 4).empty());
}

TEST(Routing, HalfWayRoundTheSignChooses) {
  const Topology ring = Topology::torus({4, 1, 1});
  EXPECT_EQ(route(ring, 0, 2).front(), link_id(0, 0, 1));
  EXPECT_EQ(route(ring, 2, 0).front(), link_id(2, 0, -1));
  EXPECT_EQ(route(ring, 0, 2, 1).front(), link_id(0, 0, -1));
}

TEST(Routing, HalfWayRoundTheSenderChoosesWhereItCan) {
  const Topology ring = Topology::torus({4, 1, 1});
  const Ties plus = {1, 0, 0};
  const Ties minus = {-1, 0, 0};
  EXPECT_EQ(route(ring.with_ties(), 0, 2, 0, minus).front(), link_id(0, 0, -1));
  EXPECT_EQ(route(ring.with_ties(), 2, 0, 0, plus).front(), link_id(2, 0, 1));
  EXPECT_EQ(route(ring.with_ties(), 0, 2, 1, plus).front(), link_id(0, 0, 1)) << "a named way knows no turns";
  EXPECT_EQ(route(ring.with_ties(), 0, 2, 1).front(), link_id(0, 0, -1)) << "nothing is named";
  EXPECT_EQ(route(ring, 0, 2, 0, minus), route(ring, 0, 2)) << "the network chooses";
  EXPECT_EQ(route(ring.with_ties(), 0, 1, 0, minus).size(), 1U) << "one way is shorter";
  const Topology torus = Topology::torus({4, 3, 2}).with_ties();
  EXPECT_EQ(balanced_ties(torus, torus.rank({1, 0, 0}), torus.rank({3, 1, 1})), (Ties{-1, 0, 1}));
  EXPECT_EQ(balanced_ties(torus, torus.rank({2, 0, 1}), torus.rank({0, 0, 1})), (Ties{1, 0, 0}));
  EXPECT_EQ(balanced_ties(Topology::torus({4, 3, 2}), 0, 2), Ties{});
  EXPECT_EQ(balanced_ties(Topology::torus({4, 2, 1}, {true, false, false}).with_ties(), 0, 6), (Ties{1, 0, 0}));
}

TEST(Routing, EveryRouteEndsWhereItShould) {
  for (const Topology& topology : {Topology::torus({4, 3, 2}), Topology::torus({3, 4, 2}, {false, true, false})}) {
    for (int from = 0; from < topology.ranks(); ++from) {
      for (int to = 0; to < topology.ranks(); ++to) {
        int at = from;
        for (const LinkId link : route(topology, from, to)) {
          ASSERT_EQ(link / 6, at);
          ASSERT_TRUE(link_exists(topology, link));
          at = topology.neighbour(at, link % 6 / 2, link % 2 == 0 ? 1 : -1);
        }
        ASSERT_EQ(at, to);
      }
    }
  }
}

TEST(VerifyLinks, CountsTheBusiestAndTheShared) {
  // Rank 0 of a ring of 8 sends to everybody: 1..4 over its + side, 5..7 over its - side.
  PlanSet set(Collective::broadcast, 8);
  set.request.topology = Topology::torus({8, 1, 1});
  std::vector<PlanSet::Ends> hops;
  for (int rank = 1; rank < 8; ++rank) hops.push_back(set.stream(0, rank));
  std::vector<StreamEnd> targets;
  for (const PlanSet::Ends& hop : hops) targets.push_back(hop.out);
  set.flow(0, 0, {{}, {own()}, false, targets, Fold::left, "send"});
  for (int rank = 1; rank < 8; ++rank)
    set.flow(rank, 0, {{}, {hops[static_cast<std::size_t>(rank) - 1].in}, true, {}, Fold::left, "take"});
  set.finish();
  ExpressionPool pool;
  const Verdict verdict = verify(set.request, set.plans, pool);
  ASSERT_TRUE(verdict.ok()) << verdict.faults.front();
  EXPECT_EQ(verdict.busiest_link_messages, 4);  // to 1, 2, 3 and 4 over the first link
  EXPECT_EQ(verdict.links_shared, 3 + 2);       // + side: 0-1, 1-2, 2-3; - side: 0-7, 7-6
  EXPECT_DOUBLE_EQ(verdict.links_shared_percent, 100.0 * 5 / 16);
  EXPECT_EQ(verdict.height, 1);
}

/// Ranks 0 and 2 of a ring exchange half-way round: the one way shares links with rank 1's message, the other not.
TEST(VerifyLinks, NamedWaysLoadTheirLinks) {
  for (const int tie : {1, -1}) {
    PlanSet set(Collective::broadcast, 4);
    set.request.topology = Topology::torus({4, 1, 1}).with_ties();
    Stream stream;
    stream.ties = {static_cast<std::int8_t>(tie), 0, 0};
    const PlanSet::Ends far = set.stream(0, 2, stream);
    const PlanSet::Ends near = set.stream(0, 1);
    const PlanSet::Ends last = set.stream(2, 3);
    set.flow(0, 0, {{}, {own()}, false, {far.out, near.out}, Fold::left, "send"});
    set.flow(1, 0, {{}, {near.in}, true, {}, Fold::left, "take"});
    set.flow(2, 0, {{}, {far.in}, true, {last.out}, Fold::left, "pass on"});
    set.flow(3, 0, {{}, {last.in}, true, {}, Fold::left, "take"});
    set.finish();
    ExpressionPool pool;
    const Verdict verdict = verify(set.request, set.plans, pool);
    ASSERT_TRUE(verdict.ok()) << verdict.faults.front();
    EXPECT_EQ(verdict.busiest_link_messages, tie == 1 ? 2 : 1);
    EXPECT_EQ(verdict.links_shared, tie == 1 ? 1 : 0);
  }
}

TEST(VerifyLinks, WaysThatCannotBeNamedAreFaults) {
  const auto fault = [](const Topology& topology, const Ties& sent, const Ties& taken) {
    PlanSet set = chain();
    set.request.topology = topology;
    set.plans[1].out[0].ties = sent;
    set.plans[2].in[0].ties = taken;
    ExpressionPool pool;
    const Verdict verdict = verify(set.request, set.plans, pool);
    return verdict.ok() ? std::string() : verdict.faults.front();
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const Topology torus = Topology::torus({3, 1, 1});
  EXPECT_EQ(fault(torus, {}, {}), "");
  EXPECT_TRUE(has(fault(torus, {1, 0, 0}, {1, 0, 0}), "names a way, but torus:3x1x1 leaves it to the network"));
  PlanSet two = exchange();
  two.request.topology = Topology::torus({2, 1, 1}, {true, true, true}, 1).with_ties();
  const auto name_way = [&](const Ties& ties) {
    two.plans[0].out[0].ties = two.plans[1].in[0].ties = ties;
    ExpressionPool pool;
    const Verdict verdict = verify(two.request, two.plans, pool);
    return verdict.ok() ? std::string() : verdict.faults.front();
  };
  EXPECT_EQ(name_way({1, 0, 0}), "");
  EXPECT_EQ(name_way({-1, 0, 0}), "");
  EXPECT_TRUE(has(name_way({2, 0, 0}), "the way along dimension 0 is 2; it must be -1, 0 or 1")) << name_way({2, 0, 0});
  EXPECT_TRUE(has(name_way({0, 1, 0}), "names a way along dimension 1, where one is shorter than the other"));
  two.plans[0].out[0].ties = {1, 0, 0};
  two.plans[1].in[0].ties = {-1, 0, 0};
  ExpressionPool pool;
  EXPECT_TRUE(has(verify(two.request, two.plans, pool).faults.front(), "the two ends differ"));
}

/// What the choice is for. A list of a2at loads all links of an even torus alike, as its bound has it; exchanges
/// between opposite ranks load both directions of a ring alike, where the sign of a difference sends half of them over
/// the same links.
TEST(VerifyLinks, SelectedTiesLoadLinksEvenly) {
  const auto busiest = [](const std::string& topology, int ranks, const char* algorithm, Collective collective) {
    return verdict_on(topology, ranks, algorithm, collective).busiest_link_messages;
  };
  using enum Collective;
  EXPECT_EQ(busiest("torus:4x4,ties", 16, "a2at", alltoall), 8);
  EXPECT_EQ(busiest("torus:4x4", 16, "a2at", alltoall), 12);
  EXPECT_EQ(busiest("torus:8x6,ties", 48, "a2at", alltoall), 48);
  EXPECT_EQ(busiest("torus:4x2x2,ties", 16, "a2at", alltoall), 8);
  EXPECT_EQ(busiest("torus:8,ties", 8, "recursive_doubling", allreduce), 4);
  EXPECT_EQ(busiest("torus:8", 8, "recursive_doubling", allreduce), 5);
}

/// Every row stays right where ways are named.
TEST(VerifyLinks, RowsAreRightWhereTiesAreSelected) {
  int proofs = 0;
  for (const char* text : {"torus:4x3,ties", "torus:2x2x2,ties", "torus:4x2m*2,ties", "torus:6,ties"}) {
    int ranks = 1;
    for (const char* at = text; *at != 0; ++at) ranks *= *at >= '2' && *at <= '6' ? *at - '0' : 1;
    const Topology topology = Topology::parse(text, ranks);
    for (const Algorithm& algorithm : catalogue()) {
      for (const PlanRequest& request : requests_on(topology, Tuning{})) {
        if (!algorithm.why_not(request).empty()) continue;
        const Verdict verdict = verify(algorithm, request);
        ASSERT_TRUE(verdict.ok()) << algorithm.name << " " << describe(request) << ": " << verdict.faults.front();
        ++proofs;
      }
    }
  }
  EXPECT_GT(proofs, 100);
}

/// Under any map every row is proved right, and those that follow the links load them as without one.
TEST(VerifyLinks, RankMapsChangeNothingButWhoStandsWhere) {
  for (const Seed& seed : seeds_of("verify_test/rank_maps", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    int proofs = 0;
    for (const Topology& plain : {Topology::torus({3, 3, 1}), Topology::torus({2, 2, 2}), Topology::torus({4, 2, 1}),
                                  Topology::torus({3, 2, 1}, {true, false, false}, 2, 2)}) {
      std::vector<int> positions(static_cast<std::size_t>(plain.ranks()));
      std::iota(positions.begin(), positions.end(), 0);
      std::shuffle(positions.begin(), positions.end(), random);
      const Topology mapped = plain.with_positions(positions);
      for (const Algorithm& algorithm : catalogue()) {
        for (PlanRequest request : requests_on(mapped, Tuning{})) {
          if (!algorithm.why_not(request).empty()) continue;
          const Verdict verdict = verify(algorithm, request);
          ASSERT_TRUE(verdict.ok()) << algorithm.name << " " << describe(request) << ": " << verdict.faults.front();
          ++proofs;
          if (algorithm.name != "trinaryx3" && algorithm.name != "bucket") continue;
          if (has_root(request.collective)) request.root = positions[static_cast<std::size_t>(request.root)];
          request.topology = plain;
          const Verdict without = verify(algorithm, request);
          EXPECT_EQ(verdict.busiest_link_messages, without.busiest_link_messages) << algorithm.name;
          EXPECT_EQ(verdict.links_shared, without.links_shared) << algorithm.name;
          EXPECT_EQ(verdict.height, without.height) << algorithm.name;
        }
      }
    }
    EXPECT_GT(proofs, 200);
  }
  PlanRequest gather;
  gather.collective = Collective::all_gather;
  gather.topology = Topology::torus({2, 2, 1}).with_positions({3, 2, 1, 0});
  EXPECT_EQ(find_algorithm("bucket")->why_not(gather),
            "under a rank map bucket does allreduce only; ring serves all_gather");
}

}  // namespace
}  // namespace torii::tests
