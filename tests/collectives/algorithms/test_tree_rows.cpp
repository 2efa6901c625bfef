// SPDX-License-Identifier: Apache-2.0
// The rows of the catalogue on trees of links: all of them proved there, and what scheduled and chain promise.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "collectives/proof/verify.hpp"
#include "collectives/schedules/schedule.hpp"
#include "tests/collectives/algorithms/cluster_trees.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"
#include "tests/support/test_run.hpp"
#include "tests/support/verify_run.hpp"

namespace torii::tests {
namespace {

std::vector<Topology> trees() {
  std::vector<Topology> result = {Topology::of_tree(tree_of({2, 2, 1, false, true}), "cluster"),
                                  Topology::of_tree(tree_of({2, 3, 2, true, true}), "mixed"),
                                  Topology::of_tree(star_of(9), "star")};
  std::mt19937_64 random(1);
  for (int i = 0; i < 10; ++i) {
    result.push_back(Topology::of_tree(random_tree(1 + i % 9, i % 2 == 0, random), "random " + std::to_string(i)));
  }
  return result;
}

class RowsOnTrees : public ::testing::Test {
 protected:
  /// `seed` is of the random runs, which every fourth proof of a row for trees has.
  void prove_rows(const Topology& topology, std::uint64_t seed) {
    for (const Tuning& tuning : {Tuning{4096, 1, 1, false}, Tuning{64, 8, 4, false}}) {
      for (const PlanRequest& request : requests_on(topology, tuning)) {
        for (const Algorithm& algorithm : catalogue()) {
          if (!algorithm.why_not(request).empty()) continue;
          ExpressionPool pool;
          const Verdict verdict = verify(algorithm, request, pool);
          ASSERT_TRUE(verdict.ok()) << algorithm.name << " " << describe(request) << ": " << verdict.faults.front()
                                    << "\n"
                                    << topology.tree()->text();
          ++proofs_[std::string(algorithm.name)];
          const bool is_own = std::set<std::string_view>{"scheduled", "chain", "multilane"}.contains(algorithm.name);
          if (!is_own || ++seed % 4 != 0) continue;
          ASSERT_EQ(run_randomly(request, plan_all(algorithm, request), verdict.result_expression, pool, {seed, 3, 2}),
                    "")
              << algorithm.name << " " << describe(request);
        }
      }
    }
  }

  std::map<std::string, int> proofs_;
};

TEST_F(RowsOnTrees, AreProved) {
  std::uint64_t seed = 1;
  for (const Topology& topology : trees()) {
    prove_rows(topology, 1000 * seed++);
    if (HasFatalFailure()) return;
  }
  for (const char* const name : {"scheduled", "chain", "multilane", "trinaryx3"}) EXPECT_GE(proofs_[name], 100) << name;
}

TEST_F(RowsOnTrees, AreProvedOnOthersEachTime) {
  for (const Seed& seed : seeds_of("tree_rows_test", is_full() ? 290 : 10)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    const TreeTopology tree = random_tree(1 + static_cast<int>(seed.value % 9), seed.value % 2 == 0, random);
    prove_rows(Topology::of_tree(tree, "random"), random());
    if (HasFatalFailure()) return;
  }
}

const Algorithm& row(const char* name) { return *find_algorithm(name); }

/// The streams with payload that leave ranks, in no order.
std::vector<std::pair<int, int>> transfers_of_plans(const PlanRequest& request) {
  std::vector<std::pair<int, int>> transfers;
  for (const Plan& plan : plan_all(row("scheduled"), request)) {
    for (const Stream& stream : plan.out) {
      if (stream.peer != plan.rank && stream.tag == 0) transfers.emplace_back(plan.rank, stream.peer);
    }
  }
  std::sort(transfers.begin(), transfers.end());
  return transfers;
}

TEST(TreeRows, ScheduledRunsTheSchedule) {
  const TreeTopology tree = tree_of({2, 3, 2, true, true});
  PlanRequest request = {Collective::broadcast, Topology::of_tree(tree, "mixed"), 0, Determinism::run, false,
                         {1 << 20, 1, 1, false}};
  std::vector<std::pair<int, int>> wanted;
  const Schedule schedule = find_schedule(tree, 0, 1 << 20);
  for (const Transfer& transfer : schedule.transfers) wanted.emplace_back(transfer.sender, transfer.receiver);
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(transfers_of_plans(request), wanted);
  // Backwards for a reduce: this tree's links are alike in both directions.
  request.collective = Collective::reduce;
  for (auto& [sender, receiver] : wanted) std::swap(sender, receiver);
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(transfers_of_plans(request), wanted);
}

/// Of two transfers over one slow link the second waits until the receiver of the first has told its sender.
TEST(TreeRows, TransfersThatFollowWaitForTokens) {
  const TreeTopology tree = tree_of({2, 3, 2, true, true});
  const PlanRequest request = {Collective::broadcast, Topology::of_tree(tree, "mixed"), 0, Determinism::run, false,
                               {1 << 20, 1, 1, false}};
  const std::vector<Plan> plans = plan_all(row("scheduled"), request);
  const std::vector<Flow>& flows = plans[0].lanes.at(0).flows;
  std::vector<std::string> labels;
  for (const Flow& flow : flows) labels.emplace_back(flow.label);
  // 0 sends to 6, waits, sends to 2, waits, sends to 1: each takes what the one before has left free.
  EXPECT_EQ(labels, (std::vector<std::string>{"send", "await", "send", "await", "send"}));
  for (const Flow& flow : flows) {
    if (flow.label != "await") continue;
    EXPECT_TRUE(flow.targets.empty());
    EXPECT_FALSE(flow.keep);
  }
}

TEST(TreeRows, ChainCrossesEveryDirectedLinkOnceAtMost) {
  for (const Topology& topology : trees()) {
    for (int root = 0; root < topology.ranks(); ++root) {
      const PlanRequest request = {Collective::broadcast, topology, root, Determinism::run, false, Tuning{}};
      const Verdict verdict = verify(row("chain"), request);
      ASSERT_TRUE(verdict.ok());
      ASSERT_LE(verdict.busiest_link_messages, 1) << topology.tree()->text();
    }
  }
}

TEST(TreeRows, ToriAreRefusedWithAReason) {
  const PlanRequest request = {Collective::broadcast, Topology::torus({3, 3, 1}), 0, Determinism::run, false, Tuning{}};
  for (const char* name : {"scheduled", "chain"}) {
    EXPECT_NE(row(name).why_not(request).find("stands on a tree of links; on torus:3x3x1 use trinaryx3"),
              std::string::npos)
        << row(name).why_not(request);
  }
  PlanRequest large = request;
  large.topology = Topology::node(257);
  EXPECT_NE(row("scheduled").why_not(large).find("up to 256 ranks"), std::string::npos);
  large.collective = Collective::allreduce;
  EXPECT_NE(row("scheduled").why_not(large).find("scheduled does broadcast, reduce; not allreduce"), std::string::npos);
}

}  // namespace
}  // namespace torii::tests
