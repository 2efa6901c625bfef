// SPDX-License-Identifier: Apache-2.0
// What is selected for operations that do not commute: at every number of ranks, for every root and length, a plan that
// combines ranks in their order.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/building/plan_builder.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/selection/selection.hpp"

namespace torii::tests {
namespace {

constexpr Collective kCombining[] = {Collective::reduce, Collective::allreduce, Collective::reduce_scatter};

std::vector<int> roots_of(Collective collective, int ranks) {
  if (!has_root(collective)) return {0};
  std::vector<int> roots;
  const int step = ranks <= 8 ? 1 : ranks / 3;
  for (int root = 0; root < ranks; root += step) roots.push_back(root);
  if (roots.back() != ranks - 1) roots.push_back(ranks - 1);
  return roots;
}

/// Every block of the plan is combined by the canonical expression.
void expect_rank_order(PlanRequest request, std::size_t bytes, bool several_nodes) {
  const Selected selected = select(TuneTable::built_in(), Forced{}, request, bytes, several_nodes, 16384);
  const std::string what = std::string(selected.algorithm->name) + ", " + std::string(name(request.collective)) +
                           " on " + request.topology.text() + " of " + std::to_string(request.topology.ranks()) +
                           ", root " + std::to_string(request.root) + ", " + std::to_string(bytes) + " bytes";
  ExpressionPool pool;
  const ExpressionId canonical = pool.canonical(all_leaves(pool, request.topology.ranks()), true);
  // Elements of a user's are never rounded; wide partial results have no roundings either.
  PlanRequest wide = selected.request;
  wide.wide_wire = true;
  const int blocks = selected.algorithm->plan(selected.request, request.root).blocks;
  for (int block = 0; block < blocks; ++block) {
    ASSERT_EQ(selected.algorithm->order(wide, block, pool), canonical) << what << ", block " << block;
  }
  if (request.topology.ranks() > 9) return;
  const Verdict verdict = verify(*selected.algorithm, selected.request);
  ASSERT_TRUE(verdict.ok()) << what << ": " << verdict.faults.front();
}

void check_topology(const Topology& topology, const std::vector<std::size_t>& lengths) {
  for (const Collective collective : kCombining) {
    if (collective == Collective::reduce_scatter && topology.ranks() > 256) continue;
    for (const int root : roots_of(collective, topology.ranks())) {
      PlanRequest request;
      request.collective = collective;
      request.topology = topology;
      request.root = root;
      request.determinism = Determinism::canonical;
      for (const std::size_t bytes : lengths) {
        for (const bool several_nodes : {false, true}) {
          expect_rank_order(request, bytes, several_nodes);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(RankOrder, IsServedForEveryNumberOfRanksRootAndLength) {
  for (int ranks = 1; ranks <= 300; ++ranks) {
    // Many lengths of few ranks, and few of many.
    const std::vector<std::size_t> lengths = ranks <= 16
                                                 ? std::vector<std::size_t>{1, 4096, 100'000, std::size_t{8} << 20}
                                                 : std::vector<std::size_t>{12, 200'000};
    check_topology(Topology::node(ranks), lengths);
    if (HasFatalFailure()) return;
  }
}

TEST(RankOrder, IsServedOnOtherTopologies) {
  for (const char* const text : {"torus:5", "torus:3x3", "mesh:2x3", "torus:2x2x2", "torus:3*3", "mesh:4x5", "node:3*2",
                                 "torus:7x9", "torus:17x16"}) {
    check_topology(Topology::parse(text, ranks_named(text)), {12, 200'000});
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace torii::tests
