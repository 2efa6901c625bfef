// SPDX-License-Identifier: Apache-2.0
// What the executor does beyond the plan, with a fault planted in each of its rules: credits of groups, messages held
// for taken by a linear program, and alltoalls in place without a copy.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "tests/collectives/proof/test_verify_faults.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"

namespace torii::tests {
namespace {

#define EXPECT_FAULT(set, rules, part) EXPECT_TRUE(contains(first_fault(set, rules), part))

TEST(VerifyCredits, GroupsOfTheExecutorAreRight) {
  for (const int slots : {1, 2, 4, 7, 8, 12, 15, 16, 24, 31, 32, 64}) {
    EXPECT_EQ(first_fault(with_slots(chain(), slots)), "no fault") << slots << " slots";
  }
}

TEST(VerifyCredits, GroupsThatDoNotDivideTheSlots) {
  ExecutorRules rules;
  rules.group = [](const Stream&, int) { return 3; };
  EXPECT_FAULT(with_slots(chain(), 12), rules, "stream 0 -> 1 tag 0 with 12 slots credits 3 messages together");
  rules.group = [](const Stream&, int) { return 4; };
  EXPECT_FAULT(with_slots(chain(), 6), rules, "credits 4 messages together");
}

/// The slot's last message is in the group after the one that is waited for.
TEST(VerifyCredits, WaitingForAnEarlierGroup) {
  ExecutorRules rules;
  rules.awaited = [](std::uint64_t message, std::uint64_t slots, std::uint64_t group) {
    const std::uint64_t first = awaited_group(message, slots, group);
    return first >= group ? first - group : first;
  };
  EXPECT_FAULT(with_slots(chain(), 16), rules,
               "message 20 waits for the credit of 4 messages from 0 on and may fill the slot of message 4");
}

TEST(VerifyCredits, WaitingForACreditThatNobodyGives) {
  ExecutorRules rules;
  rules.awaited = [](std::uint64_t message, std::uint64_t slots, std::uint64_t) { return message - slots; };
  EXPECT_FAULT(with_slots(chain(), 16), rules, "message 17 waits for the credit of a group that begins at 1");
}

/// The receiver gives a credit for messages that have not all come, or in a word that nobody looks at.
TEST(VerifyCredits, GroupsThatTheReceiverCountsOtherwise) {
  ExecutorRules rules;
  rules.credited = [](std::uint64_t message, std::uint64_t) { return message; };
  EXPECT_FAULT(with_slots(chain(), 16), rules,
               "message 17 waits for the credit of 4 messages from 0 on and may fill the slot of message 1");
  rules = {};
  rules.credited = [](std::uint64_t message, std::uint64_t group) { return message / (2 * group) * 2 * group; };
  rules.awaited = [](std::uint64_t message, std::uint64_t slots, std::uint64_t group) {
    return (message - slots) / (2 * group) * 2 * group;
  };
  EXPECT_FAULT(with_slots(chain(), 16), rules, "message 4 is credited with 4 messages from 0 on");
  EXPECT_EQ(first_fault(with_slots(chain(), 4), rules),
            "stream 0 -> 1 tag 0 with 4 slots: message 1 is credited with "
            "1 messages from 0 on");
}

TEST(VerifyCredits, SlotsHeldForFree) {
  ExecutorRules rules;
  rules.free = [](std::uint64_t taken, std::uint64_t slots) { return taken + slots + 1; };
  EXPECT_FAULT(with_slots(chain(), 4), rules,
               "when 0 messages have been taken, message 4 needs no credit, but message 0 may be in its slot");
  rules.free = [](std::uint64_t taken, std::uint64_t slots) { return taken == 0 ? slots : 2 * taken + slots; };
  EXPECT_FAULT(with_slots(chain(), 4), rules, "when 1 messages have been taken, message 5 needs no credit");
  rules.free = [](std::uint64_t taken, std::uint64_t) { return taken; };
  EXPECT_EQ(first_fault(with_slots(chain(), 4), rules), "no fault") << "it looks at credits that it need not see";
}

/// After a call in place the next one may go by value, and waits for the credits that slots would have left.
TEST(VerifyCredits, CreditsMissingAfterACallWithoutSlots) {
  EXPECT_EQ(first_fault(lent_broadcast(true)), "no fault");
  ExecutorRules rules;
  rules.released = [](std::uint64_t, std::uint64_t ended, std::uint64_t) { return ended - 1; };
  EXPECT_FAULT(with_slots(lent_broadcast(true), 4), rules,
               "a call without slots for messages 0 to 1 gives credits from 1 on, but message 4 of the next one waits "
               "for the credit of 0");
  EXPECT_EQ(first_fault(with_slots(lent_broadcast(true), 1), rules), "no fault") << "one slot has one credit";
  EXPECT_EQ(first_fault(chain(), rules), "no fault") << "everything goes through slots";
  rules.released = [](std::uint64_t begun, std::uint64_t ended, std::uint64_t slots) {
    return ended - std::min(ended, slots) + 0 * begun;
  };
  EXPECT_FAULT(with_slots(lent_broadcast(true), 4), rules,
               "messages 1 to 1 gives credits from 0 on, which is none of them");
}

/// Two ranks send each other two blocks and then take them: a group of both slots would let neither send its second.
TEST(VerifyCredits, GroupsWithinASegmentDeadlock) {
  PlanSet set(Collective::allreduce, 2, 2);
  Stream two;
  two.messages_per_segment = 2;
  const PlanSet::Ends ends[2] = {set.stream(0, 1, two), set.stream(1, 0, two)};
  for (int rank = 0; rank < 2; ++rank) {
    const StreamEnd in = ends[1 - rank].in;
    set.flow(rank, 0, {{0, 1, 2, 2}, {own()}, false, {ends[rank].out}, Fold::left, "give"});
    set.flow(rank, 0, {{0, 1, 2, 2}, rank == 0 ? std::vector{own(), in} : std::vector{in, own()}, true, {}});
  }
  set.finish();
  EXPECT_EQ(first_fault(with_slots(set, 2)), "no fault");
  ExecutorRules rules;
  rules.group = [](const Stream&, int slots) { return slots; };
  EXPECT_FAULT(with_slots(set, 2), rules, "deadlock");
}

/// The receiver takes the second block first.
PlanSet taken_backwards() {
  PlanSet set(Collective::broadcast, 2, 2);
  Stream two;
  two.messages_per_segment = 2;
  const PlanSet::Ends ends = set.stream(0, 1, two);
  set.flow(0, 0, {{0, 1, 2, 2}, {own()}, false, {ends.out}, Fold::left, "send"});
  set.flow(1, 0, {at_block(1), {{ends.in.stream, 1}}, true, {}, Fold::left, "second"});
  set.flow(1, 0, {at_block(0), {{ends.in.stream, 0}}, true, {}, Fold::left, "first"});
  return set.finish();
}

TEST(VerifyCredits, MessagesHeldForTakenTooEarly) {
  EXPECT_EQ(first_fault(taken_backwards()), "no fault");
  ExecutorRules rules;
  rules.taken = [](std::uint64_t, std::uint64_t ended, std::uint64_t messages) { return ended * messages; };
  EXPECT_FAULT(taken_backwards(), rules,
               "its message 0 is held for taken, but rank 1 lane 0 flow 1 (first) block 0 may still read it");
  EXPECT_EQ(first_fault(chain(), rules), "no fault") << "there the last message is the only one";
  rules.taken = [](std::uint64_t, std::uint64_t ended, std::uint64_t messages) { return ended * messages + 1; };
  EXPECT_FAULT(chain(), rules, "it belongs to a later call");
}

/// Each rank sends its block for the other, keeps its own and takes the other's.
PlanSet exchanged_blocks() {
  PlanSet set(Collective::alltoall, 2, 2);
  const PlanSet::Ends ends[2] = {set.stream(0, 1), set.stream(1, 0)};
  for (int rank = 0; rank < 2; ++rank) {
    set.flow(rank, 0, {at_block(1 - rank), {own()}, false, {ends[rank].out}, Fold::left, "send"});
    set.flow(rank, 0, {at_block(rank), {own()}, true, {}, Fold::left, "keep"});
    set.flow(rank, 0, {at_block(1 - rank), {ends[1 - rank].in}, true, {}, Fold::left, "take"});
  }
  return set.finish();
}

TEST(VerifyCredits, AnAlltoallInPlaceReadsBeforeItStores) {
  EXPECT_EQ(first_fault(exchanged_blocks()), "no fault");
  PlanSet set = exchanged_blocks();
  std::ranges::reverse(set.plans[1].lanes[0].flows);  // rank 1 takes first
  EXPECT_FAULT(set, {}, "in place, rank 1 lane 0 flow 0 (take) block 1 overwrites the operand's block for rank 0");
  // With a second lane it never runs as a list, and the input is copied.
  set.plans[1].lanes.push_back({{}, 2});
  EXPECT_EQ(first_fault(set), "no fault");
}

}  // namespace
}  // namespace torii::tests
