// SPDX-License-Identifier: Apache-2.0
// Rings that outlive plans: senders that wait for counts, and which ring a stream uses, with faults planted in both.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/proof/verify.hpp"
#include "tests/collectives/proof/test_verify_faults.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"
#include "tests/support/verify_run.hpp"

namespace torii::tests {
namespace {

/// A random run in which senders wait for one message (0), or for counts that are published after so many.
std::string run_with(const PlanSet& set, int counts_every) {
  PlanSet roomy = set;
  for (Plan& plan : roomy.plans) plan.slots = 64;
  ExpressionPool pool;
  const Verdict verdict = verify(roomy.request, roomy.plans, pool);
  EXPECT_TRUE(verdict.ok()) << verdict.faults.front();
  return run_randomly(set.request, set.plans, verdict.result_expression, pool,
                      {.seed = 1, .segments = 5, .calls = 2, .counts_every = counts_every});
}

/// A broadcast of four blocks whose messages are sent, and taken, in these orders.
PlanSet in_orders(const std::array<int, 4>& sent, const std::array<int, 4>& taken, int slots) {
  PlanSet set(Collective::broadcast, 2, 4);
  const PlanSet::Ends ends = set.stream(0, 1, {.messages_per_segment = 4});
  const auto message = [](StreamEnd end, int block) {
    end.position = static_cast<std::uint16_t>(block);
    return end;
  };
  for (const int block : sent)
    set.flow(0, 0, {at_block(block), {own()}, false, {message(ends.out, block)}, Fold::left, "send"});
  for (const int block : taken)
    set.flow(1, 0, {at_block(block), {message(ends.in, block)}, true, {}, Fold::left, "take"});
  return with_slots(set.finish(), slots);
}

/// Message 3 uses the slot of message 1, which is taken; but message 0 is taken only after message 3.
TEST(VerifyRings, CountsDeadlockWhereWaitsForOneMessageDoNot) {
  const PlanSet set = in_orders({0, 1, 3, 2}, {1, 3, 0, 2}, 2);
  EXPECT_EQ(run_with(set, 0), "");
  EXPECT_TRUE(contains(run_with(set, 1), "deadlock"));
  EXPECT_TRUE(contains(first_fault(set), "deadlock: rank"));
  const PlanSet roomy = with_slots(set, 4);
  EXPECT_EQ(run_with(roomy, 1), "");
  EXPECT_EQ(verdict_of(roomy).slots_least, 4);
}

/// A receiver may take messages ahead of its count while the sender has slots.
TEST(VerifyRings, MessagesMayBeTakenAheadOfTheCount) {
  const PlanSet set = in_orders({0, 1, 2, 3}, {1, 0, 3, 2}, 2);
  EXPECT_EQ(first_fault(set), "no fault");
  EXPECT_EQ(run_with(set, 1), "");
  EXPECT_EQ(verdict_of(set).slots_least, 2);
}

/// Two ranks send each other nine blocks and then take them.
PlanSet all_before_any(int slots) {
  PlanSet set(Collective::allreduce, 2, 9);
  const PlanSet::Ends ends[2] = {set.stream(0, 1, {.messages_per_segment = 9}),
                                 set.stream(1, 0, {.messages_per_segment = 9})};
  for (int rank = 0; rank < 2; ++rank) {
    const StreamEnd in = ends[1 - rank].in;
    set.flow(rank, 0, {{0, 1, 9, 9}, {own()}, false, {ends[rank].out}, Fold::left, "give"});
    set.flow(rank, 0, {{0, 1, 9, 9}, rank == 0 ? std::vector{own(), in} : std::vector{in, own()}, true, {}});
  }
  return with_slots(set.finish(), slots);
}

/// With nine slots and counts of two messages, the ninth of a segment is counted only with the first of the next one.
TEST(VerifyRings, CountsThatArePublishedTooLate) {
  const PlanSet set = all_before_any(9);
  EXPECT_EQ(first_fault(set), "no fault");
  EXPECT_EQ(verdict_of(set).slots_least, 9);
  EXPECT_EQ(run_with(set, 1), "");
  EXPECT_TRUE(contains(run_with(set, 2), "deadlock"));
  ExecutorRules rules;
  rules.published = [](int slots, int) { return slots / 4; };
  EXPECT_TRUE(contains(first_fault(set, rules),
                       "counts are published every 2 messages, which leaves 8 of 9 slots; 9 are needed"));
  EXPECT_EQ(first_fault(all_before_any(10), rules), "no fault");
  EXPECT_EQ(run_with(all_before_any(10), 2), "");
  rules.published = [](int, int) { return 0; };
  EXPECT_TRUE(contains(first_fault(set, rules), "counts are published every 0 messages"));
}

TEST(VerifyRings, APublishedCountLeavesTheSlotsThatAreNeeded) {
  for (int slots = 1; slots <= 64; ++slots) {
    for (int least = 1; least <= slots; ++least) {
      const int every = published_every(slots, least);
      EXPECT_GE(every, 1);
      EXPECT_LE(every, std::max(1, slots / 4));
      EXPECT_GE(slots - (every - 1), least) << slots << " slots";
    }
  }
}

/// Two streams from rank 0 to rank 1, whose tags are 7 and 3; rank 1 lists them the other way round.
PlanSet two_streams() {
  PlanSet set(Collective::broadcast, 2, 2);
  const PlanSet::Ends first = set.stream(0, 1, {.tag = 7});
  const PlanSet::Ends second = set.stream(0, 1, {.tag = 3});
  set.flow(0, 0, {at_block(0), {own()}, false, {first.out}, Fold::left, "send"});
  set.flow(0, 0, {at_block(1), {own()}, false, {second.out}, Fold::left, "send"});
  set.flow(1, 0, {at_block(0), {second.in}, true, {}, Fold::left, "take"});
  set.flow(1, 0, {at_block(1), {first.in}, true, {}, Fold::left, "take"});
  std::swap(set.plans[1].in[0], set.plans[1].in[1]);
  return set.finish();
}

TEST(VerifyRings, BothEndsUseOneRing) {
  const PlanSet set = two_streams();
  EXPECT_EQ(first_fault(set), "no fault");
  EXPECT_EQ(verdict_of(set).proofs.rings, 2);
  EXPECT_EQ(ring_of(set.plans[0].out, 0), 1) << "tag 7";
  EXPECT_EQ(ring_of(set.plans[1].in, 0), 0) << "tag 3";
  ExecutorRules rules;
  rules.ring = [](std::span<const Stream>, std::size_t stream) { return static_cast<int>(stream); };
  EXPECT_EQ(first_fault(set, rules),
            "stream 0 -> 1 tag 3 uses ring 1 at the sender and ring 0 at the receiver; there are 2");
  rules.ring = [](std::span<const Stream>, std::size_t) { return 0; };
  EXPECT_EQ(first_fault(set, rules), "stream 0 -> 1 tag 3 shares ring 0 with another stream of these ranks");
  rules.ring = [](std::span<const Stream> streams, std::size_t stream) { return streams[stream].tag; };
  EXPECT_EQ(first_fault(set, rules),
            "stream 0 -> 1 tag 3 uses ring 3 at the sender and ring 3 at the receiver; there are 2");
}

TEST(VerifyRings, StreamsWithinARankNeedNone) {
  EXPECT_EQ(verdict_of(up_and_down()).proofs.rings, 1);
  ExecutorRules rules;
  rules.ring = [](std::span<const Stream> streams, std::size_t stream) {
    return streams[stream].delivery == Delivery::local ? 9 : ring_of(streams, stream);
  };
  EXPECT_EQ(first_fault(up_and_down(), rules), "no fault");
}

}  // namespace
}  // namespace torii::tests
