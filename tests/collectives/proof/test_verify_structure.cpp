// SPDX-License-Identifier: Apache-2.0
// What the verifier says of plan sets that cannot be tabulated or break a rule of structure.
#include <gtest/gtest.h>

#include <vector>

#include "tests/collectives/proof/test_verify_faults.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"

namespace torii::tests {
namespace {

/// A stream that one end lacks changes the maxima too; the stream is named first.
TEST(Verify, AStreamWithoutReceiverIsNamedBeforeTheMaxima) {
  PlanSet set = exchange();
  set.plans[1].in.clear();
  EXPECT_TRUE(contains(first_fault(set), "stream 0 -> 1 tag 0: the receiver does not know it"));
}

/// What StreamEnd cannot number would be another stream, or another message.
TEST(Verify, NumbersThatDoNotFitAreFaults) {
  PlanSet streams = chain();
  streams.plans[0].out.resize(65536);
  EXPECT_TRUE(contains(first_fault(streams.finish()), "rank 0: it has 65536 streams in one direction"));
  PlanSet messages = chain();
  messages.plans[0].out[0].messages_per_segment = messages.plans[1].in[0].messages_per_segment = 65537;
  EXPECT_TRUE(contains(first_fault(messages), "stream 0 -> 1 tag 0: 65537 messages per segment"));
}

TEST(Verify, NonsenseInStructureIsNamed) {
  const auto broken = [](auto change) {
    PlanSet set = exchange();
    change(set.plans);
    return first_fault(set);
  };
  using Plans = std::vector<Plan>;
  EXPECT_TRUE(contains(broken([](Plans& p) { p.pop_back(); }), "2 ranks but there are 1 plans"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[1].rank = 0; }), "rank 1: the plan says it is of rank 0"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[1].ranks = 3; }), "there are 3 ranks, not 2"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].slots = 0; }), "the number of slots is 0"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[1].slots = 3; }), "the number of slots differs"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[1].blocks = 0; }), "the number of blocks is 0"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[1].dealing = Dealing::block_cyclic; }), "blocks or dealing differ"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].in_streams_max = 2; }), "in_streams_max is 2"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].out_streams_max = 0; }), "out_streams_max is 0"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].lanes[0].window = 0; }), "rank 0 lane 0: the window is 0"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].out[0].tag = 5; }), "stream 0 -> 1 tag 0: the receiver expects it"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].out[0].wide = true; }), "stream 0 -> 1 tag 0: the two ends differ"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].out[0].peer = 9; }), "there is no such receiver"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].lanes[0].flows[0].walk.count = 0; }), "the walk visits 0 blocks"));
  EXPECT_TRUE(contains(broken([](Plans& p) {
                         p[0].lanes[0].flows[0].walk = {1, 1, 1, 2};
                       }),
                       "the walk leaves the 1 blocks at block 1"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].lanes[0].flows[0].targets[0].stream = 4; }),
                       "target stream 4 does not exist"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].lanes[0].flows[1].sources[1].stream = 4; }),
                       "source stream 4 does not exist"));
  EXPECT_TRUE(
      contains(broken([](Plans& p) { p[0].lanes[0].flows[0].targets[0].position = 1; }), "is beyond its 1 messages"));
  EXPECT_TRUE(
      contains(broken([](Plans& p) { p[0].lanes[0].flows.push_back(p[0].lanes[0].flows[0]); }), "is produced twice"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].lanes[0].flows.pop_back(); }), "is never consumed"));
  EXPECT_TRUE(
      contains(broken([](Plans& p) { p[0].lanes[0].flows.erase(p[0].lanes[0].flows.begin()); }), "is never produced"));
  EXPECT_TRUE(
      contains(broken([](Plans& p) { p[0].lanes[0].flows[1].sources.clear(); }), "keeps a value but has no source"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].out[0].messages_per_segment = p[1].in[0].messages_per_segment = 0; }),
                       "0 messages per segment"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].out[0].delivery = p[1].in[0].delivery = Delivery::local; }),
                       "joins a rank with itself"));
  EXPECT_TRUE(contains(broken([](Plans& p) { p[0].out[0].delivery = p[1].in[0].delivery = Delivery::write_in_place; }),
                       "a flow that takes what a peer writes in place"));
}

TEST(Verify, FormsOfLendAndHandover) {
  PlanSet set = lent_broadcast(true);
  set.plans[0].out[0].wide = set.plans[1].in[0].wide = true;
  EXPECT_TRUE(contains(first_fault(set), "only streams through slots may be wide"));
  set = lent_broadcast(true);
  set.plans[0].out[0].peer = set.plans[1].in[0].peer = 0;
  EXPECT_TRUE(contains(first_fault(set), "a rank reads or writes nothing of its own in place"));
  set = halves(true);
  set.plans[0].lanes[0].flows[0].keep = true;
  EXPECT_TRUE(contains(first_fault(set), "a flow whose operand is read in place has"));
  set = up_and_down();
  set.plans[0].lanes[0].flows[0].keep = false;
  EXPECT_TRUE(contains(first_fault(set), "hands over a result that it does not keep"));
}

TEST(Verify, BlocksOfBothEndsAgree) {
  PlanSet set = halves(true);
  set.plans[0].lanes[0].flows[0].walk = at_block(0);
  EXPECT_TRUE(contains(first_fault(set), "carries another block than is expected"));
}

TEST(Verify, OneBlockPerRankWhereTheCollectiveAsks) {
  PlanSet set = exchange();
  set.request.collective = Collective::all_gather;
  EXPECT_TRUE(contains(first_fault(set), "has one block per rank, or as many parts of each, not 1 blocks"));
}

}  // namespace
}  // namespace torii::tests
