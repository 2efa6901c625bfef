// SPDX-License-Identifier: Apache-2.0
// Leaves in any intervals: their subtrees, and plans of node and binomial that are proved to give E over all leaves.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "collectives/building/plan_builder.hpp"
#include "collectives/drawing/draw.hpp"
#include "collectives/proof/verify.hpp"
#include "runtime/base/status.hpp"
#include "runtime/plan/leaves.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"
#include "tests/support/test_run.hpp"
#include "tests/support/verify_run.hpp"

namespace torii::tests {
namespace {

constexpr Collective kSums[] = {Collective::reduce, Collective::allreduce, Collective::reduce_scatter};

std::string text_of(const std::vector<std::size_t>& counts) {
  std::string text = "leaves";
  for (const std::size_t count : counts) text += ' ' + std::to_string(count);
  return text;
}

/// The subtrees of a rank as "first+count".
std::string subtrees_text(const LeafIntervals& leaves, int rank) {
  std::string text;
  for (const LeafSubtree& one : leaves.subtrees_of(rank)) {
    text += (text.empty() ? "" : " ") + std::to_string(one.first) + '+' + std::to_string(one.count);
  }
  return text;
}

/// `leaves` leaves on `ranks` ranks, divided at random places; some ranks may have none.
std::vector<std::size_t> random_counts(std::mt19937_64& random, int ranks, std::size_t leaves) {
  std::vector<std::size_t> cuts = {0, leaves};
  for (int cut = 1; cut < ranks; ++cut) cuts.push_back(random() % (leaves + 1));
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::size_t> counts;
  for (std::size_t i = 1; i < cuts.size(); ++i) counts.push_back(cuts[i] - cuts[i - 1]);
  return counts;
}

PlanRequest request_over(const LeafIntervals& leaves, Collective collective = Collective::allreduce) {
  PlanRequest request;
  request.collective = collective;
  request.topology = Topology::node(leaves.ranks());
  request.determinism = Determinism::canonical;
  request.leaves = &leaves;
  return request;
}

std::string refusal_of(std::vector<LeafClaim> claims) {
  try {
    (void)intervals_of(claims);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(LeafIntervals, SubtreesAreTheLargestOfOneRank) {
  const LeafIntervals uneven({3, 3});
  EXPECT_EQ(subtrees_text(uneven, 0), "0+2 2+1");
  EXPECT_EQ(subtrees_text(uneven, 1), "3+1 4+2");
  // The last leaves of a number that is no power of two are subtrees too.
  EXPECT_EQ(subtrees_text(LeafIntervals({4, 3}), 1), "4+3");
  EXPECT_EQ(subtrees_text(LeafIntervals({7}), 0), "0+7");
  EXPECT_EQ(subtrees_text(LeafIntervals({1, 6}), 1), "1+1 2+2 4+3");
  EXPECT_EQ(subtrees_text(LeafIntervals({0, 5, 0}), 1), "0+5");
  EXPECT_EQ(LeafIntervals({0, 5, 0}).operands(2), 0);
}

TEST(LeafIntervals, SubtreesFormABinomialTree) {
  const LeafIntervals leaves({3, 3});
  const auto subtrees = leaves.subtrees();
  EXPECT_EQ(subtrees[0].children, (std::vector<int>{1, 3}));
  EXPECT_EQ(subtrees[1].children, (std::vector<int>{2}));
  EXPECT_EQ(subtrees[2].parent, 1);
  EXPECT_EQ(leaves.end_of(1), 3);
  EXPECT_EQ(leaves.end_of(0), 4);
  EXPECT_FALSE(leaves.is_canonical(0)) << "(0 (1 2)) 3 is not E over four operands";
  EXPECT_TRUE(leaves.is_canonical(1));
}

TEST(LeafIntervals, AlignedIntervalsNeedNoPlanOfTheirOwn) {
  EXPECT_TRUE(LeafIntervals({1, 1, 1}).is_one_subtree_each());
  EXPECT_TRUE(LeafIntervals({4, 4, 4}).is_one_subtree_each());
  EXPECT_TRUE(LeafIntervals({4, 4, 3}).is_one_subtree_each());
  EXPECT_FALSE(LeafIntervals({4, 2, 1}).is_one_subtree_each()) << "0 (1 2) is not E over three ranks";
  EXPECT_FALSE(LeafIntervals({4, 0, 4}).is_one_subtree_each());
  EXPECT_FALSE(LeafIntervals({3, 3}).is_one_subtree_each());
  EXPECT_TRUE(LeafIntervals({1, 1, 1}).is_one_each());
  EXPECT_FALSE(LeafIntervals({2, 1}).is_one_each());
  EXPECT_FALSE(LeafIntervals({2, 0, 1}).is_one_each());
}

TEST(LeafIntervals, FewPartialVectorsLeaveARank) {
  for (const Seed& seed : seeds_of("leaves_test/intervals", 2000)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    const std::size_t leaves = 1 + random() % 5000;
    const LeafIntervals dealt(random_counts(random, 1 + static_cast<int>(random() % 9), leaves));
    std::size_t next = 0;
    for (const LeafSubtree& one : dealt.subtrees()) {
      EXPECT_EQ(one.first, next);
      next += one.count;
      if (one.parent < 0) continue;
      const LeafSubtree& parent = dealt.subtrees()[static_cast<std::size_t>(one.parent)];
      EXPECT_LT(parent.first, one.first);
      // A subtree and its sibling never belong to one rank: they would be one larger subtree.
      const bool is_sibling = &dealt.subtrees()[static_cast<std::size_t>(parent.children.front())] == &one;
      if (is_sibling && one.children.empty()) {
        EXPECT_NE(parent.rank, one.rank);
      }
    }
    EXPECT_EQ(next, leaves);
    const int log2_leaves = static_cast<int>(std::bit_width(leaves)) - 1;
    EXPECT_LE(dealt.operands_max(), std::max(1, 2 * log2_leaves)) << leaves;
  }
}

TEST(LeafIntervals, ClaimsThatDoNotFitAreRefused) {
  EXPECT_EQ(intervals_of(std::vector<LeafClaim>{{5, 0, 2}, {5, 99, 0}, {5, 2, 3}}), LeafIntervals({2, 0, 3}));
  EXPECT_EQ(refusal_of({{4, 0, 2}, {5, 2, 2}}),
            "rank 1 says that there are 5 leaves, rank 0 that there are 4; all ranks must give the same number");
  EXPECT_EQ(refusal_of({{0, 0, 0}, {0, 0, 0}}), "the number of leaves is 0; it must be from 1 to 2147483647");
  EXPECT_EQ(refusal_of({{4, 0, 2}, {4, 3, 1}}),
            "no rank before rank 1 has leaf 2; intervals must follow each other in the order of ranks");
  EXPECT_EQ(
      refusal_of({{6, 0, 4}, {6, 2, 4}}),
      "rank 1 has leaves 2 to 3, which a rank before it has too; intervals must follow each other in the order of "
      "ranks");
  EXPECT_EQ(refusal_of({{4, 0, 2}, {4, 2, 1}}), "no rank has leaf 3; intervals must cover all leaves");
  EXPECT_EQ(refusal_of({{4, 0, 2}, {4, 2, 3}}),
            "rank 1 has 3 leaves from leaf 2 on, but the last of 4 leaves is leaf 3");
  EXPECT_NE(refusal_of({{4, 2, 2}, {4, 0, 2}}), "") << "in the order of ranks";
}

class LeafPlans : public testing::TestWithParam<const char*> {
 protected:
  const Algorithm& algorithm() const { return *find_algorithm(GetParam()); }

  /// Proves every collective with several roots and tunings; returns the number of proofs.
  int prove(const std::vector<std::size_t>& counts, std::uint64_t seed) {
    const LeafIntervals leaves(counts);
    const Tuning tunings[] = {{4096, 8, 4}, {4096, 8, 4, true}, {4096, 1, 1}, {4096, 4, 1, true}, {4096, 3, 2}};
    const auto ranks = static_cast<int>(counts.size());
    int proofs = 0;
    for (const Collective collective : kSums) {
      for (const int root : {0, ranks - 1, ranks / 2}) {
        if (root != 0 && collective != Collective::reduce) continue;
        PlanRequest request = request_over(leaves, collective);
        request.root = root;
        request.tuning = tunings[(seed + static_cast<std::uint64_t>(proofs)) % std::size(tunings)];
        if (!algorithm().why_not(request).empty()) continue;
        ++proofs;
        ExpressionPool pool;
        const Verdict verdict = verify(algorithm(), request, pool);
        if (!verdict.ok()) {
          ADD_FAILURE() << GetParam() << ' ' << describe(request) << ' ' << text_of(counts) << ": "
                        << verdict.faults.front();
          return 0;
        }
        const std::string wrong = run_randomly(request, plan_all(algorithm(), request), verdict.result_expression, pool,
                                               {.seed = seed, .segments = 3});
        EXPECT_EQ(wrong, "") << GetParam() << ' ' << describe(request) << ' ' << text_of(counts);
      }
    }
    return proofs;
  }
};

/// One rank has more subtrees than there are streams for them.
TEST_P(LeafPlans, AreProvedWhereValuesTakeTurns) {
  std::uint64_t seed = 0;
  int proofs = 0;
  for (const std::vector<std::size_t>& counts :
       {std::vector<std::size_t>{1, 254, 1}, {1, 1022, 1}, {3, 0, 250, 3}, {1, 254, 254, 1}}) {
    for (int turn = 0; turn < 5; ++turn) proofs += prove(counts, ++seed);
    if (HasFailure()) return;
  }
  EXPECT_GE(proofs, 20);
}

TEST_P(LeafPlans, AreProvedForRandomIntervals) {
  const std::vector<Seed> seeds = seeds_of("leaves_test/plans", is_full() ? 2000 : 120);
  std::size_t proofs = 0;
  for (const Seed& seed : seeds) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    const int ranks = 1 + static_cast<int>(random() % 8);
    const std::size_t leaves = 1 + random() % (seed.value % 3 == 0 ? 9 : 40);
    proofs += static_cast<std::size_t>(prove(random_counts(random, ranks, leaves), seed.value));
    if (HasFailure()) return;
  }
  if (is_replay()) return;
  EXPECT_GE(proofs, seeds.size());
}

TEST_P(LeafPlans, AreProvedForManyRanks) {
  std::mt19937_64 random(8);
  for (const int ranks : {16, 25, 32}) EXPECT_GT(prove(random_counts(random, ranks, 50), 0), 0);
  EXPECT_GT(prove({1, 0, 0, 0, 0, 0, 0, 0}, 1), 0);
  EXPECT_GT(prove({0, 0, 0, 7}, 2), 0);
}

/// The plan for other intervals gives another expression, so the proof is no formality.
TEST_P(LeafPlans, OfOtherIntervalsAreRejected) {
  const LeafIntervals leaves({3, 3, 2});
  const LeafIntervals others({3, 4, 1});
  PlanRequest request = request_over(others);
  const std::vector<Plan> plans = plan_all(algorithm(), request);
  ExpressionPool pool;
  EXPECT_TRUE(verify(request, plans, pool).ok());
  request.leaves = &leaves;
  EXPECT_FALSE(verify(request, plans, pool).ok());
}

TEST_P(LeafPlans, ThatReadTheWrongOperandAreRejected) {
  const LeafIntervals leaves({3, 3});
  PlanRequest request = request_over(leaves);
  std::vector<Plan> plans = plan_all(algorithm(), request);
  int changed = 0;
  for (Lane& lane : plans[0].lanes) {
    for (Flow& flow : lane.flows) {
      for (StreamEnd& source : flow.sources) {
        if (source.stream != kOwn || source.position != 1) continue;
        source.position = 0;
        ++changed;
      }
    }
  }
  EXPECT_GT(changed, 0);
  ExpressionPool pool;
  EXPECT_FALSE(verify(request, plans, pool).ok());
  plans = plan_all(algorithm(), request);
  plans[0].lanes[0].flows[0].sources[0].position = 2;
  const Verdict verdict = verify(request, plans, pool);
  ASSERT_FALSE(verdict.ok());
  EXPECT_NE(verdict.faults.front().find("operand 2"), std::string::npos) << verdict.faults.front();
}

TEST_P(LeafPlans, AreDrawn) {
  const LeafIntervals leaves({3, 3});
  PlanRequest request = request_over(leaves);
  EXPECT_NE(draw_text(request, algorithm().plan(request, 0)).find("own 1"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Rows, LeafPlans, testing::Values("node", "binomial"),
                         [](const auto& row) { return std::string(row.param); });

TEST(LeafRequests, AreRefusedByOtherRows) {
  const LeafIntervals leaves({3, 3, 2});
  PlanRequest request = request_over(leaves);
  for (const Algorithm& algorithm : catalogue()) {
    const std::string reason = algorithm.why_not(request);
    EXPECT_EQ(reason.empty(), algorithm.name == "node" || algorithm.name == "binomial") << algorithm.name;
  }
  EXPECT_EQ(
      find_algorithm("recursive_doubling")->why_not(request),
      "its order is not that of 8 leaves in these intervals of 3 ranks; node (up to 256 ranks) and binomial honour "
      "it for any intervals");
  request.collective = Collective::scan;
  EXPECT_EQ(find_algorithm("node")->why_not(request),
            "node with leaves does reduce, allreduce, reduce_scatter; not scan");
  request.collective = Collective::allreduce;
  request.topology = Topology::node(4);
  EXPECT_EQ(find_algorithm("binomial")->why_not(request),
            "the intervals of leaves are those of 3 ranks, but there are 4");
}

}  // namespace
}  // namespace torii::tests
