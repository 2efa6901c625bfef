// SPDX-License-Identifier: Apache-2.0
// Copies, buffer offers and waits that the executor leaves out, and bundles, with a fault planted in each rule.
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

Proofs proofs_of(const PlanSet& set) {
  const Verdict verdict = verdict_of(set);
  EXPECT_TRUE(verdict.ok()) << verdict.faults.front();
  return verdict.proofs;
}

/// Broadcast of two blocks to two ranks. One flow sends both blocks to rank 1; to rank 2 they go by that flow too, or
/// each by a flow of its own, the second block first.
PlanSet two_receivers(bool by_one_flow) {
  PlanSet set(Collective::broadcast, 3, 2);
  Stream two;
  two.messages_per_segment = 2;
  const Walk both = {0, 1, 2, 2};
  const auto first = set.stream(0, 1, two);
  const auto second = set.stream(0, 2, two);
  if (by_one_flow) {
    set.flow(0, 0, {both, {own()}, false, {first.out, second.out}, Fold::left, "send"});
  } else {
    set.flow(0, 0, {at_block(0), {own()}, false, {first.out, {second.out.stream, 1}}, Fold::left, "send"});
    set.flow(0, 0, {at_block(1), {own()}, false, {{first.out.stream, 1}, second.out}, Fold::left, "send"});
  }
  set.flow(1, 0, {both, {first.in}, true, {}, Fold::left, "take"});
  const Walk backwards = {1, 1, 2, 2};
  set.flow(2, 0, {by_one_flow ? both : backwards, {second.in}, true, {}, Fold::left, "take"});
  return set.finish();
}

TEST(VerifyShortcuts, StreamsThatShareACopyCarryTheSame) {
  EXPECT_EQ(first_fault(two_receivers(true)), "no fault");
  EXPECT_EQ(proofs_of(two_receivers(true)).shared, 1);
  EXPECT_EQ(first_fault(two_receivers(false)), "no fault");
  EXPECT_EQ(proofs_of(two_receivers(false)).shared, 0);
  ExecutorRules rules;  // that one flow feeds each of them is not looked at
  rules.shared = [](const Plan& plan, std::span<const int>, StreamEnd a, StreamEnd b) {
    return plan.out[a.stream].messages_per_segment == plan.out[b.stream].messages_per_segment;
  };
  EXPECT_FAULT(
      two_receivers(false), rules,
      "stream 0 -> 2 tag 0 and stream 0 -> 1 tag 0 share a copy of their payload, but their messages 0 differ");
  EXPECT_EQ(first_fault(two_receivers(true), rules), "no fault") << "there it makes no difference";
}

/// The root's vector goes to one rank as it is, and to another as float.
TEST(VerifyShortcuts, StreamsOfOtherWidthsShareNoCopy) {
  PlanSet set = two_receivers(true);
  set.plans[0].out[1].wide = set.plans[2].in[0].wide = true;
  EXPECT_EQ(first_fault(set), "no fault");
  EXPECT_EQ(proofs_of(set).shared, 0);
  ExecutorRules rules;
  rules.shared = [](const Plan&, std::span<const int> feeding, StreamEnd a, StreamEnd b) {
    return feeding[a.stream] == 1 && feeding[b.stream] == 1 && a.position == b.position;
  };
  EXPECT_FAULT(set, rules, "share a copy of their payload");
}

/// Rank 0 keeps a first value, hands it on to lane 1 which sends it, and then keeps another one in its place.
PlanSet kept_twice() {
  PlanSet set(Collective::allreduce, 2);
  Stream local;
  local.delivery = Delivery::local;
  Stream back;
  back.tag = 1;
  const auto turn = set.stream(0, 0, local);
  const auto there = set.stream(0, 1);
  const auto result = set.stream(1, 0, back);
  set.flow(0, 0, {{}, {own()}, true, {turn.out}, Fold::left, "first"});
  set.flow(0, 1, {{}, {turn.in}, false, {there.out}, Fold::left, "send"});
  set.flow(0, 0, {{}, {result.in}, true, {}, Fold::left, "second"});
  set.flow(1, 0, {{}, {there.in, own()}, true, {result.out}, Fold::left, "combine"});
  return set.finish();
}

TEST(VerifyShortcuts, ResultsThatEnginesSendAreFinal) {
  EXPECT_EQ(first_fault(kept_twice()), "no fault");
  EXPECT_EQ(proofs_of(kept_twice()).sent_in_place, 1) << "what rank 1 keeps and sends";
  EXPECT_EQ(proofs_of(up_and_down()).sent_in_place, 2) << "the result on its way down";
  ExecutorRules rules;
  rules.result_final = [](const BlockUse&) { return true; };
  EXPECT_FAULT(kept_twice(), rules,
               "rank 0 lane 0 flow 1 (second) block 0 overwrites the result block 0 of rank 0, which an engine may "
               "still send for rank 0 lane 1 flow 0 (send) block 0");
  EXPECT_EQ(first_fault(up_and_down(), rules), "no fault") << "there every result is final";
}

TEST(VerifyShortcuts, OperandsThatEnginesSendStay) {
  EXPECT_EQ(first_fault(exchange()), "no fault");
  EXPECT_EQ(proofs_of(exchange()).sent_in_place, 0) << "both operands are overwritten in place";
  ExecutorRules rules;
  rules.operand_kept = [](const BlockUse&) { return true; };
  EXPECT_FAULT(exchange(), rules,
               "in place, rank 0 lane 0 flow 1 (combine) block 0 overwrites the operand block 0 of rank 0, which an "
               "engine may still send for rank 0 lane 0 flow 0 (give) block 0");
  EXPECT_EQ(first_fault(chain(), rules), "no fault") << "the root keeps nothing";
}

/// Rank 1 folds the vector of rank 0, which it reads in place.
PlanSet folded_reading() {
  PlanSet set(Collective::reduce, 2);
  set.request.root = 1;
  Stream read;
  read.delivery = Delivery::read_in_place;
  const auto ends = set.stream(0, 1, read);
  set.flow(0, 0, {{}, {own()}, false, {ends.out}, Fold::left, "give"});
  set.flow(1, 0, {{}, {ends.in, own()}, true, {}, Fold::left, "fold"});
  return set.finish();
}

TEST(VerifyShortcuts, PrivateMemoryIsOnlyCopied) {
  EXPECT_EQ(first_fault(folded_reading()), "no fault");
  EXPECT_EQ(proofs_of(folded_reading()).read_privately, 0);
  EXPECT_EQ(proofs_of(lent_broadcast(true)).read_privately, 1);
  ExecutorRules rules;
  rules.only_copies = [](Collective) { return true; };
  EXPECT_FAULT(folded_reading(), rules, "rank 1 lane 0 flow 0 (fold) block 0 may read an operand from private memory");
  EXPECT_EQ(first_fault(lent_broadcast(true), rules), "no fault");
}

TEST(VerifyShortcuts, OffersAreReadBeforeTheNextOne) {
  EXPECT_EQ(proofs_of(lent_broadcast(true)).offers, 1);
  EXPECT_EQ(proofs_of(halves(true)).offers, 2);
  ExecutorRules rules;
  rules.offers = [](bool, bool) { return true; };
  EXPECT_FAULT(lent_broadcast(true), rules,
               "rank 0, with its operand by value, makes a buffer offer to rank 1 and may end its call before it is");
  EXPECT_EQ(first_fault(halves(true), rules), "no fault") << "the writer's message comes after its look";
  rules.offers = [](bool, bool by_value) { return !by_value; };
  EXPECT_FAULT(halves(true), rules,
               "rank 0, with its operand by value, makes no buffer offer to rank 1, which waits for it");
  rules.offers = [](bool writes_result, bool) { return writes_result; };
  EXPECT_FAULT(lent_broadcast(true), rules, "rank 0 makes no buffer offer to rank 1, which waits for it");
}

TEST(VerifyShortcuts, CallsLastUntilTheirOperandsAreRead) {
  ExecutorRules rules;
  rules.awaits = [](const Stream&) { return false; };
  EXPECT_FAULT(lent_broadcast(true), rules,
               "stream 0 -> 1 tag 0: the call of rank 0 may end before rank 1 lane 0 flow 0 (take) block 0 has read");
  EXPECT_EQ(first_fault(halves(false), rules), "no fault") << "a message comes back";
  rules.awaits = [](const Stream& stream) { return stream.delivery == Delivery::read_in_place; };
  EXPECT_EQ(first_fault(halves(false), rules), "no fault") << "it waits for what comes anyway";
  rules.awaits = [](const Stream&) { return true; };
  EXPECT_FAULT(chain(), rules,
               "at the end of its call rank 0 waits for a reader of stream 0 -> 1 tag 0, which has none");
}

TEST(VerifyShortcuts, ListsHaveOneLaneAndNoOffers) {
  EXPECT_EQ(proofs_of(chain()).lists, 3);
  EXPECT_EQ(proofs_of(up_and_down()).lists, 0);
  ExecutorRules rules;
  rules.as_list = [](const Plan&) { return true; };
  EXPECT_FAULT(up_and_down(), rules, "rank 0 runs as a list, but it has 2 lanes");
  EXPECT_FAULT(lent_broadcast(true), rules, "rank 0 runs as a list, but stream 0 -> 1 tag 0 does not go through slots");
  PlanSet pieces = two_receivers(true);
  for (Plan& plan : pieces.plans) plan.dealing = Dealing::block_cyclic;
  EXPECT_EQ(first_fault(pieces), "no fault");
  EXPECT_FAULT(pieces, rules, "rank 0 runs as a list, but its blocks are in pieces");
  PlanSet wide = exchange();
  for (Plan& plan : wide.plans) plan.in[0].wide = plan.out[0].wide = true;
  EXPECT_EQ(first_fault(wide), "no fault");
  EXPECT_FAULT(wide, rules, "rank 0 runs as a list, but stream 0 -> 1 tag 0 is wide");
}

/// An alltoall of four ranks in which both blocks that rank 1 passes on share a slot.
PlanSet bundled() {
  PlanSet set(Collective::alltoall, 4);
  set.request.tuning = {.segment_bytes = 4096, .slots = 4, .window = 1, .radix = 2};
  set.plans = plan_all(*find_algorithm("floyd"), set.request);
  return set;
}

TEST(VerifyShortcuts, BundlesAreSignalledOnceAndLast) {
  EXPECT_GT(proofs_of(bundled()).bundled, 0);
  EXPECT_EQ(proofs_of(chain()).bundled, 0);
  ExecutorRules rules;
  rules.ends_bundle = [](const Stream& stream, int position) { return position % stream.bundle == 0; };
  EXPECT_FAULT(bundled(), rules, "signals its bundle before message 1 is stored");
  rules.ends_bundle = [](const Stream&, int) { return true; };
  EXPECT_FAULT(bundled(), rules, "share a slot that is not signalled once");
  EXPECT_EQ(first_fault(chain(), rules), "no fault");
  rules.ends_bundle = [](const Stream&, int) { return false; };
  EXPECT_FAULT(chain(), rules, "messages 0 to 0 of stream 0 -> 1 tag 0 share a slot that is not signalled once");
}

/// Messages are packed in a bundle: all have the length of the first.
TEST(VerifyShortcuts, OnlyEqualBlocksTravelInBundles) {
  PlanSet set = two_receivers(true);
  for (Plan& plan : set.plans) {
    for (std::vector<Stream>* streams : {&plan.in, &plan.out}) {
      for (Stream& stream : *streams) stream.bundle = 2;
    }
    plan.bundle_max = 2;
  }
  EXPECT_FAULT(set, {}, "the blocks of this broadcast may differ in length, so its messages do not travel in bundles");
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

TEST(VerifyShortcuts, AnAlltoallInPlaceReadsBeforeItStores) {
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
