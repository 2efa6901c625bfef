// SPDX-License-Identifier: Apache-2.0
// What trinaryx3 and binomial make of trees.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "collectives/trees/trees.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"
#include "tests/support/cpu_time.hpp"

namespace torii::tests {
namespace {

const Algorithm& trinaryx3() { return *find_algorithm("trinaryx3"); }
const Algorithm& binomial() { return *find_algorithm("binomial"); }

TEST(Trinaryx3, TreesHangFromOneRootWhereThatIsAskedFor) {
  PlanRequest request;
  request.topology = Topology::torus({5, 4, 3});
  EXPECT_NE(find_trees(request)->trees[1].root(), find_trees(request)->trees[0].root());
  request.tuning.common_root = true;
  for (const Tree& tree : find_trees(request)->trees) EXPECT_EQ(tree.root(), 0);
  EXPECT_TRUE(verify(trinaryx3(), request).ok());
  request = {};
  request.topology = Topology::node(4);
  for (const Tree& tree : find_trees(request)->trees) EXPECT_EQ(tree.root(), 0);
  request.topology = Topology::node(12);
  EXPECT_NE(find_trees(request)->trees[1].root(), find_trees(request)->trees[0].root());
  request.tuning.common_root = true;
  for (const Tree& tree : find_trees(request)->trees) EXPECT_EQ(tree.root(), 0);
  EXPECT_TRUE(verify(trinaryx3(), request).ok());
}

TEST(Trinaryx3, PlansTheLargestTorusInSeconds) {
  PlanRequest request;
  request.topology = Topology::torus({48, 6, 32});
  const double start = cpu_seconds();
  const std::vector<Plan> plans = plan_all(trinaryx3(), request);
  const double took = cpu_seconds() - start;
  EXPECT_LT(took, kSlower * 5);
  EXPECT_EQ(plans.size(), 9216U);
  for (const Tree& tree : find_trees(request.topology, 0)->trees) EXPECT_EQ(tree.height(), 84);
}

TEST(Trinaryx3, DealsOneBlockToEachTreeInLanesOfItsOwn) {
  PlanRequest request;
  request.topology = Topology::torus({3, 3, 3});
  const Plan plan = trinaryx3().plan(request, 13);
  EXPECT_EQ(plan.dealing, Dealing::block_cyclic);
  EXPECT_EQ(plan.blocks, 3);
  ASSERT_EQ(plan.lanes.size(), 6U);
  std::array<int, 3> lanes_of_block = {0, 0, 0};
  for (const Lane& lane : plan.lanes) {
    ASSERT_EQ(lane.flows.size(), 1U);
    EXPECT_EQ(lane.window, request.tuning.window);
    ++lanes_of_block[static_cast<std::size_t>(lane.flows[0].walk.block(0))];
  }
  EXPECT_EQ(lanes_of_block, (std::array<int, 3>{2, 2, 2}));
}

/// Every rank of a node combines and sends its slice: operands of the node's ranks first, then the subtrees.
TEST(Trinaryx3, SlicesTreesAmongTheRanksOfANode) {
  PlanRequest request;
  request.topology = Topology::torus({3, 1, 1}, {true, false, false}, 1, 2);
  ExpressionPool pool;
  const Verdict verdict = verify(trinaryx3(), request, pool);
  ASSERT_TRUE(verdict.ok()) << verdict.faults.front();
  const std::size_t trees = find_trees(request.topology.of_nodes(), 0)->trees.size();
  ASSERT_EQ(verdict.result_expression.size(), 2 * trees);
  EXPECT_EQ(pool.text(verdict.result_expression[0]), "(((0 1) (2 3)) (4 5))");
  EXPECT_EQ(verdict.result_expression[0], verdict.result_expression[1]) << "slices do not change the order";
  for (int rank = 0; rank < 6; ++rank) {
    for (const Stream& stream : trinaryx3().plan(request, rank).out) {
      const bool is_mate = stream.peer / 2 == rank / 2;
      EXPECT_TRUE(is_mate || stream.peer % 2 == rank % 2) << "between nodes, ranks of one slice only";
    }
  }
  // Each slice takes the links its tree takes: as many messages as slices, over all links that are used.
  request.topology = Topology::torus({3, 3, 3}, {true, true, true}, 3, 4);
  EXPECT_EQ(verify(trinaryx3(), request).busiest_link_messages, 4);
}

TEST(Trinaryx3, RefusesWithAReason) {
  PlanRequest request;
  request.topology = Topology::torus({3, 3, 3});
  EXPECT_EQ(trinaryx3().why_not(request), "");
  request.determinism = Determinism::canonical;
  EXPECT_NE(trinaryx3().why_not(request).find("is not the canonical one; binomial and node"), std::string::npos);
  request.collective = Collective::broadcast;  // nothing is combined, so there is no order to honour
  EXPECT_EQ(trinaryx3().why_not(request), "");
  request.root = 27;
  EXPECT_NE(trinaryx3().why_not(request).find("27"), std::string::npos);
  request = {};
  request.collective = Collective::all_gather;
  EXPECT_NE(trinaryx3().why_not(request).find("all_gather"), std::string::npos);
}

/// Both rows on shapes where a rank has few or many trees, with a root in the middle and one slot upwards.
TEST(TreeAlgorithms, AreProvedOnEveryKindOfShape) {
  for (const Topology& topology :
       {Topology::node(1), Topology::node(2), Topology::node(7), Topology::node(12), Topology::torus({2, 2, 2}),
        Topology::torus({4, 3, 2}, {true, true, false}), Topology::torus({3, 3, 3}, {false, false, false}),
        Topology::torus({3, 4, 3}, {false, true, false}), Topology::torus({5, 4, 1}, {false, false, false}),
        Topology::torus({3, 2, 1}, {true, true, true}, 2, 3), Topology::torus({1, 1, 1}, {true, true, true}, 1, 4)}) {
    for (const Tuning& tuning : {Tuning{4096, 1, 1, false}, Tuning{4096, 3, 2, false}}) {
      for (const PlanRequest& request : requests_on(topology, tuning)) {
        for (const Algorithm* algorithm : {&trinaryx3(), &binomial()}) {
          if (!algorithm->why_not(request).empty()) continue;
          const Verdict verdict = verify(*algorithm, request);
          ASSERT_TRUE(verdict.ok()) << algorithm->name << " " << describe(request) << ": " << verdict.faults.front();
          if (algorithm == &trinaryx3() && request.collective != Collective::barrier) {
            const bool is_node = topology.kind() == Topology::Kind::node;
            EXPECT_LE(verdict.busiest_link_messages, is_node ? 1 : topology.per_node()) << describe(request);
          }
        }
      }
    }
  }
}

TEST(Binomial, FoldsInTheCanonicalOrderForAnyNumberOfRanks) {
  for (int ranks = 1; ranks <= 70; ++ranks) {
    PlanRequest request;
    request.topology = Topology::node(ranks);
    request.determinism = Determinism::canonical;
    request.wide_wire = true;
    ExpressionPool pool;
    std::vector<ExpressionId> leaves;
    for (int rank = 0; rank < ranks; ++rank) leaves.push_back(pool.leaf(rank));
    EXPECT_EQ(binomial().order(request, 0, pool), pool.canonical(leaves, true)) << ranks;
    request.collective = Collective::reduce;
    request.root = ranks - 1;
    EXPECT_EQ(binomial().order(request, 0, pool), pool.canonical(leaves, true)) << ranks;
    request.determinism = Determinism::run;  // this one starts at the root, so it is another order
    if (ranks > 2) {
      EXPECT_NE(binomial().order(request, 0, pool), pool.canonical(leaves, true)) << ranks;
    }
  }
}

TEST(Binomial, IsAsHighAsTheLogarithm) {
  for (const int ranks : {2, 3, 8, 9, 64, 65}) {
    PlanRequest request;
    request.collective = Collective::broadcast;
    request.topology = Topology::node(ranks);
    request.root = 1;
    int levels = 0;
    while ((1 << levels) < ranks) ++levels;
    const Verdict verdict = verify(binomial(), request);
    ASSERT_TRUE(verdict.ok()) << verdict.faults.front();
    EXPECT_LE(verdict.height, levels) << ranks;
    EXPECT_GE(verdict.height, levels - 1) << ranks;
  }
}

}  // namespace
}  // namespace torii::tests
