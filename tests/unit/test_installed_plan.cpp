// SPDX-License-Identifier: Apache-2.0
// Which streams share one copy of their payload.
#include "runtime/installed_plan.hpp"

#include <gtest/gtest.h>

#include "collectives/catalogue.hpp"

namespace torii {
namespace {

Plan plan_of(std::string_view algorithm, Collective collective, const Topology& topology, int rank) {
  PlanRequest request;
  request.collective = collective;
  request.topology = topology;
  request.tuning = {.segment_bytes = 4096, .slots = 4, .window = 2};
  return find_algorithm(algorithm)->plan(request, rank);
}

TEST(GroupLeaders, ABroadcastIsOneGroup) {
  const Plan root = plan_of("node", Collective::broadcast, Topology::node(5), 0);
  EXPECT_EQ(group_leaders(root, Nodes(5)), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_TRUE(group_leaders(plan_of("node", Collective::broadcast, Topology::node(5), 3), Nodes(5)).empty());
}

TEST(GroupLeaders, OperandsForDifferentRanksAreAloneAndFinishedBlocksAGroup) {
  const Plan plan = plan_of("node", Collective::allreduce, Topology::node(4), 1);
  ASSERT_EQ(plan.out.size(), 6U);
  const std::vector<int> leaders = group_leaders(plan, Nodes(4));
  int lent = 0;
  int landing = 0;
  for (std::size_t i = 0; i < plan.out.size(); ++i) {
    if (plan.out[i].carriage == Carriage::lend) {
      ++lent;
      EXPECT_EQ(leaders[i], -1);
    } else {
      ++landing;
      EXPECT_GE(leaders[i], 0);
      EXPECT_EQ(leaders[static_cast<std::size_t>(leaders[i])], leaders[i]) << "a leader leads itself";
    }
  }
  EXPECT_EQ(lent, 3);
  EXPECT_EQ(landing, 3);
}

TEST(GroupLeaders, ARingHasNone) {
  for (const int leader : group_leaders(plan_of("ring", Collective::allreduce, Topology::node(4), 2), Nodes(4))) {
    EXPECT_EQ(leader, -1);
  }
}

/// One flow with the targets `ends`.
Plan one_flow(std::vector<Stream> out, std::vector<StreamEnd> ends) {
  Plan plan;
  plan.out = std::move(out);
  plan.lanes.resize(1);
  plan.lanes[0].flows.push_back({.sources = {{}}, .targets = std::move(ends)});
  return plan;
}

TEST(GroupLeaders, OnlyEqualStreamsShare) {
  const Stream plain = {.peer = 1};
  Stream wide = plain;
  wide.wide = true;
  Stream twice = plain;
  twice.messages_per_segment = 2;
  Stream lent = plain;
  lent.carriage = Carriage::lend;
  Stream own = plain;
  own.carriage = Carriage::handover;
  for (const Stream& other : {wide, twice, lent}) {
    EXPECT_EQ(group_leaders(one_flow({plain, other}, {{0, 0}, {1, 0}}), Nodes(3)), (std::vector<int>{-1, -1}));
    EXPECT_EQ(group_leaders(one_flow({plain, other, plain}, {{0, 0}, {1, 0}, {2, 0}}), Nodes(3)),
              (std::vector<int>{0, -1, 0}));
  }
  EXPECT_EQ(group_leaders(one_flow({own, own}, {{0, 0}, {1, 0}}), Nodes(3)), (std::vector<int>{-1, -1}));
  EXPECT_EQ(group_leaders(one_flow({twice, twice}, {{0, 0}, {1, 1}}), Nodes(3)), (std::vector<int>{-1, -1}))
      << "their messages stand in different slots";
}

TEST(GroupLeaders, PeersOfOtherNodesAreAGroupOfTheirOwn) {
  const Plan root = plan_of("node", Collective::broadcast, Topology::node(5), 0);
  // Targets in order: ranks 1, 2, 3, 4.
  EXPECT_EQ(group_leaders(root, {0, 1, 0, 2, 0}), (std::vector<int>{0, 1, 0, 1}));
}

TEST(GroupLeaders, AStreamOfTwoFlowsIsAlone) {
  Plan plan = one_flow({{.peer = 1}, {.peer = 2}}, {{0, 0}, {1, 0}});
  plan.lanes[0].flows.push_back({.sources = {{}}, .targets = {{1, 1}}});
  EXPECT_EQ(group_leaders(plan, Nodes(3)), (std::vector<int>{-1, -1}));
}

}  // namespace
}  // namespace torii
