// SPDX-License-Identifier: Apache-2.0
// Blocks of pairwise exchanges that use no slots: a fault planted in each of their rules is found.
#include <gtest/gtest.h>

#include <string>

#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "tests/collectives/proof/test_verify_faults.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"

namespace torii::tests {
namespace {

PlanSet direct(Collective collective, int slots = 4) {
  PlanSet set(collective, 3);
  set.request.tuning = {.segment_bytes = 4096, .slots = slots, .window = 2};
  set.plans = plan_all(*find_algorithm("direct"), set.request);
  return set;
}

std::string fault_with(const ExecutorRules& rules, Collective collective = Collective::alltoall) {
  return first_fault(direct(collective), rules);
}

TEST(VerifyTransfers, TheRulesOfTheExecutorAreRight) {
  for (const Collective collective : {Collective::alltoall, Collective::scatter, Collective::gather}) {
    EXPECT_EQ(fault_with({}, collective), "no fault") << name(collective);
    const Proofs proofs = verdict_of(direct(collective)).proofs;
    const int pairs = collective == Collective::alltoall ? 6 : 2;
    EXPECT_EQ(proofs.transfers, pairs);
    EXPECT_EQ(proofs.offers, collective == Collective::alltoall ? 6 : 4);
    EXPECT_EQ(proofs.read_in_place, pairs);
    EXPECT_EQ(proofs.write_in_place, pairs);
  }
}

TEST(VerifyTransfers, ABlockIsSignalledWhenItIsWhole) {
  ExecutorRules rules;
  rules.completes = [](std::size_t, std::size_t, std::size_t) { return true; };
  EXPECT_EQ(fault_with(rules), "a block of 262145 bytes is signalled when 262144 bytes of it are stored");
  rules.completes = [](std::size_t done, std::size_t, std::size_t) { return done == 0; };
  EXPECT_EQ(fault_with(rules), "a block of 262145 bytes is signalled when 262144 bytes of it are stored");
  rules.completes = [](std::size_t done, std::size_t, std::size_t block) { return done == block; };
  EXPECT_EQ(fault_with(rules), "a block of 1 bytes is never signalled");
  // Wrong only where the last portion is not a whole one.
  rules.completes = [](std::size_t done, std::size_t, std::size_t block) { return done + kPortionBytes == block; };
  EXPECT_EQ(fault_with(rules), "a block of 1 bytes is never signalled");
}

TEST(VerifyTransfers, OneLineOfOffersIsTooFew) {
  ExecutorRules rules;
  rules.line = [](std::uint64_t) { return std::uint64_t{0}; };
  EXPECT_EQ(fault_with(rules),
            "a buffer offer of a pairwise exchange may overwrite that of 1 calls before, which the peer still reads");
  rules.line = [](std::uint64_t offers) { return offers % 3; };
  EXPECT_EQ(fault_with(rules), "a buffer offer of a pairwise exchange goes to line 2 of 2");
  rules.line = [](std::uint64_t offers) { return offers < 2 ? offers : 0; };
  EXPECT_EQ(fault_with(rules), "buffer offer 3 of a pairwise exchange is not in the line whose turn it is");
}

TEST(VerifyTransfers, TheSenderWaitsForReaders) {
  ExecutorRules rules;
  rules.read = [](TransferWay) { return false; };
  EXPECT_EQ(fault_with(rules), "the sender's call may end before its block is read in place");
  rules.read = [](TransferWay way) { return way == TransferWay::read_in_place; };
  EXPECT_EQ(fault_with(rules), "the sender's call may end before its block is read in place");
}

TEST(VerifyTransfers, WaysAreThoseThatOffersAllow) {
  ExecutorRules rules;
  rules.way = [](const PairwiseExchange&, std::uint64_t, bool) { return TransferWay::write_in_place; };
  EXPECT_EQ(fault_with(rules), "a block goes by way 2, which the offers 0 and 0 do not allow");
  rules.way = [](const PairwiseExchange&, std::uint64_t reach, bool) {
    return reach == kByValue ? TransferWay::through_slots : TransferWay::read_in_place;
  };
  EXPECT_EQ(fault_with(rules), "a block goes by way 3, which the offers 2 and 0 do not allow");
  rules.way = [](const PairwiseExchange&, std::uint64_t reach, bool) {
    return reach == kInArena ? TransferWay::read_privately : TransferWay::through_slots;
  };
  EXPECT_EQ(fault_with(rules), "a block goes by way 4, which the offers 1 and 0 do not allow");
  rules.way = [](const PairwiseExchange&, std::uint64_t, bool) { return TransferWay::unknown; };
  EXPECT_EQ(fault_with(rules), "a block goes by way 0, which the offers 0 and 0 do not allow");
  rules.way = [](const PairwiseExchange&, std::uint64_t, bool) { return TransferWay::through_slots; };
  EXPECT_EQ(fault_with(rules), "no fault") << "slots are always possible";
}

TEST(VerifyTransfers, OperandsOfAnAlltoallInPlaceAreOverwritten) {
  ExecutorRules rules;
  rules.exchange_operand_kept = [](const PairwiseExchange&) { return true; };
  EXPECT_TRUE(contains(fault_with(rules), "which an engine may still send for"));
  EXPECT_EQ(fault_with(rules, Collective::scatter), "no fault");
  EXPECT_EQ(fault_with(rules, Collective::gather), "no fault");
}

}  // namespace
}  // namespace torii::tests
