// SPDX-License-Identifier: Apache-2.0
// Steps: the streams and flows that verbs become, beside plans that are written by hand.
#include <gtest/gtest.h>

#include <vector>

#include "collectives/building/steps.hpp"

namespace torii::tests {
namespace {

PlanRequest request_of(Collective collective, int ranks) {
  PlanRequest request;
  request.collective = collective;
  request.topology = Topology::node(ranks);
  return request;
}

constexpr StreamEnd end_at(int stream, int position) {
  return {static_cast<std::uint16_t>(stream), static_cast<std::uint16_t>(position)};
}

TEST(Steps, AnExchangeIsTwoFlows) {
  const PlanRequest request = request_of(Collective::allreduce, 2);
  Steps steps(request, 0, 1);
  const Link partner = {{.peer = 1, .tag = 3, .is_awaited = false}};
  steps.begin("give").combine(Steps::own()).send(partner);
  steps.begin("combine").combine(Steps::own()).combine(partner).keep();
  const Plan plan = steps.take();
  ASSERT_EQ(plan.lanes.size(), 1u);
  const Walk walk = {0, 1, 1, 1};
  const std::vector<Flow> flows = {{walk, {{}}, false, {end_at(0, 0)}, Fold::left, "give"},
                                   {walk, {{}, end_at(0, 0)}, true, {}, Fold::left, "combine"}};
  EXPECT_EQ(plan.lanes[0].flows, flows);
  EXPECT_EQ(plan.in, std::vector{partner.stream});
  EXPECT_EQ(plan.out, std::vector{partner.stream});
  EXPECT_EQ(plan.in_streams_max, 1);
  EXPECT_EQ(plan.out_streams_max, 1);
}

/// The place of a block in its link is the position of its message, and even steps are one flow.
TEST(Steps, PositionsAndCountsComeFromTheBlocksOfALink) {
  const PlanRequest request = request_of(Collective::all_gather, 4);
  const std::vector<int> blocks = {3, 0, 1, 2};
  const Link from = {{.peer = 1}, blocks};
  Steps steps(request, 0, 4);
  steps.begin("late", 2).combine(from).keep();
  steps.lane();
  for (const int block : {0, 1}) steps.begin("early", block).combine(from).keep();
  steps.begin("early", 3).combine(from).keep();
  const Plan plan = steps.take();
  ASSERT_EQ(plan.in.size(), 1u);
  EXPECT_EQ(plan.in[0].messages_per_segment, 4);
  ASSERT_EQ(plan.lanes.size(), 2u);
  EXPECT_EQ(plan.lanes[0].flows[0].sources, std::vector{end_at(0, 3)});
  ASSERT_EQ(plan.lanes[1].flows.size(), 2u);
  EXPECT_EQ(plan.lanes[1].flows[0].walk, (Walk{0, 1, 2, 4}));
  EXPECT_EQ(plan.lanes[1].flows[0].sources, std::vector{end_at(0, 1)});
  EXPECT_EQ(plan.lanes[1].flows[1].sources, std::vector{end_at(0, 0)});
}

TEST(Steps, AHeldValueIsHandedOverAndAnOperandStays) {
  const PlanRequest request = request_of(Collective::allreduce, 3);
  Steps steps(request, 1, 1);
  steps.begin("first").combine(Steps::own()).send({{.peer = 0}});
  EXPECT_EQ(steps.hold(0), Steps::own());
  steps.begin("second").combine(Steps::own()).combine(Link{{.peer = 0}});
  const StreamEnd held = steps.hold(7);
  steps.begin("third").combine(held).send({{.peer = 2}});
  const Plan plan = steps.take();
  EXPECT_EQ(held, end_at(1, 0));
  EXPECT_EQ(plan.in[1].delivery, Delivery::local);
  EXPECT_EQ(plan.in[1].tag, 7);
  EXPECT_TRUE(plan.lanes[0].flows[1].keep);
  EXPECT_EQ(plan.lanes[0].flows[1].targets, std::vector{end_at(1, 0)});
}

/// With a wide wire a held value goes through slots, so holding asks for no result; the step keeps it all the same.
TEST(Steps, AKeptValueThatIsHeldStaysKept) {
  PlanRequest request = request_of(Collective::allreduce, 2);
  request.wide_wire = true;
  Steps steps(request, 0, 1);
  steps.begin("kept").combine(Steps::own()).combine(Link{{.peer = 1}}).keep();
  const StreamEnd held = steps.hold(0);
  steps.begin("on").combine(held).send({{.peer = 1, .tag = 1}});
  EXPECT_TRUE(steps.take().lanes[0].flows[0].keep);
}

TEST(Steps, ABarrierMovesTokensOnly) {
  const PlanRequest request = request_of(Collective::barrier, 2);
  Steps steps(request, 0, 1);
  steps.begin("nothing").combine(Steps::own()).keep();
  steps.begin("give").combine(Steps::own()).send({{.peer = 1}});
  EXPECT_EQ(steps.hold(0), Steps::own());
  steps.begin("take").combine(Steps::own()).combine(Link{{.peer = 1}}).keep();
  const Plan plan = steps.take();
  ASSERT_EQ(plan.lanes[0].flows.size(), 2u);
  EXPECT_TRUE(plan.lanes[0].flows[0].sources.empty());
  EXPECT_EQ(plan.lanes[0].flows[1].sources, std::vector{end_at(0, 0)});
  EXPECT_FALSE(plan.lanes[0].flows[1].keep);
}

TEST(StepsDeathTest, ABlockThatTheLinkDoesNotCarry) {
  const PlanRequest request = request_of(Collective::all_gather, 2);
  Steps steps(request, 0, 2);
  steps.begin("wrong", 1);
  EXPECT_DEATH(steps.send({{.peer = 1}}), "rank 0 is wrong: its step \"wrong\" moves block 1");
}

}  // namespace
}  // namespace torii::tests
