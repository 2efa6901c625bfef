// SPDX-License-Identifier: Apache-2.0
// Dimension-order routing and the figures of links that the verifier derives from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "collectives/verify.hpp"
#include "runtime/routing.hpp"
#include "tests/collectives/test_verify_plans.hpp"

namespace torii::test {
namespace {

std::vector<LinkId> route(const Topology& topology, int from, int to, int turn = 0) {
  std::vector<LinkId> links;
  append_route(topology, from, to, turn, links);
  return links;
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

/// Under any map every row is proved right, and those that follow the links load them as without one.
TEST(VerifyLinks, RankMapsChangeNothingButWhoStandsWhere) {
  std::mt19937 random(20261123);
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
  PlanRequest gather;
  gather.collective = Collective::all_gather;
  gather.topology = Topology::torus({2, 2, 1}).with_positions({3, 2, 1, 0});
  EXPECT_EQ(find_algorithm("bucket")->why_not(gather),
            "under a rank map bucket does allreduce only; ring serves all_gather");
}

}  // namespace
}  // namespace torii::test
