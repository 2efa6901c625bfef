// SPDX-License-Identifier: Apache-2.0
// The verifier on plan sets made by hand: what is right passes, and every single fault is found and named.
#include <gtest/gtest.h>

#include <utility>

#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "tests/collectives/proof/test_verify_faults.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"
#include "tests/support/test_run.hpp"
#include "tests/support/verify_run.hpp"

namespace torii::tests {
namespace {

/// The fault that some random run of wrong plans reports; its seeds are the same every time, so that the fault is
/// always seen. Wrong results are told by the expressions of `right`.
std::string random_fault(const PlanSet& set, const PlanSet& right, int runs = 60) {
  ExpressionPool pool;
  const Verdict verdict = verify(right.request, right.plans, pool);
  for (int seed = 1; seed <= runs; ++seed) {
    const RandomRun run = {static_cast<std::uint64_t>(seed), 5, 2};
    std::string fault = run_randomly(set.request, set.plans, verdict.result_expression, pool, run);
    if (!fault.empty()) return fault;
  }
  return "";
}

void expect_no_random_fault(const PlanSet& set) {
  ExpressionPool pool;
  const Verdict verdict = verify(set.request, set.plans, pool);
  for (const Seed& seed : seeds_of("verify_test/runs", 60)) {
    ASSERT_EQ(run_randomly(set.request, set.plans, verdict.result_expression, pool, {seed.value, 5, 2}), "") << seed;
  }
}

TEST(Verify, RightPlansPass) {
  for (const PlanSet& set : {exchange(), chain(), halves(true), halves(false), up_and_down()}) {
    EXPECT_EQ(first_fault(set), "no fault");
    expect_no_random_fault(set);
  }
}

TEST(Verify, NamesTheExpression) {
  const PlanSet set = exchange();
  ExpressionPool pool;
  const Verdict verdict = verify(set.request, set.plans, pool);
  ASSERT_EQ(verdict.result_expression.size(), 1u);
  const ExpressionId leaves[] = {pool.leaf(0), pool.leaf(1)};
  EXPECT_EQ(verdict.result_expression[0], pool.fold(leaves, true));
}

/// Each rank has a result of its own; operands out of rank order are right for no scan.
TEST(Verify, PrefixesAreInRankOrder) {
  for (const Collective collective : {Collective::scan, Collective::exscan}) {
    PlanSet set(collective, 4);
    set.plans = plan_all(*find_algorithm("node"), set.request);
    ExpressionPool pool;
    const Verdict right = verify(set.request, set.plans, pool);
    ASSERT_TRUE(right.ok()) << right.faults.front();
    ASSERT_EQ(right.result_expression.size(), 4U);
    EXPECT_EQ(pool.text(right.result_expression[3]), collective == Collective::scan ? "(((0 1) 2) 3)" : "((0 1) 2)");
    EXPECT_EQ(right.result_expression[0], collective == Collective::scan ? pool.leaf(0) : kNoExpression);
    std::vector<StreamEnd>& sources = set.plans[2].lanes[0].flows[1].sources;
    std::swap(sources[0], sources[1]);
    EXPECT_EQ(first_fault(set), std::string("the result of rank 2 should combine ranks 0 to ") +
                                    (collective == Collective::scan ? "2 in this order, but is ((1 0) 2)"
                                                                    : "1 in this order, but is (1 0)"));
    set.plans[2].blocks = 2;
    EXPECT_NE(first_fault(set), "no fault");
  }
}

TEST(Verify, HeightCountsMessagesBetweenRanks) {
  EXPECT_EQ(verdict_of(chain()).height, 2);
  EXPECT_EQ(verdict_of(up_and_down()).height, 4);
}

TEST(Verify, FewestSlotsOfPlansWithoutCyclesIsOne) {
  EXPECT_EQ(verdict_of(chain()).slots_least, 1);
  EXPECT_EQ(verdict_of(up_and_down()).slots_least, 1);
}

/// Two messages per segment that are sent before the first is taken, in a lane that both wait in: two slots at least.
PlanSet two_before_one(int slots) {
  PlanSet set(Collective::allreduce, 2, 2);
  Stream two;
  two.messages_per_segment = 2;
  PlanSet::Ends ends[2] = {set.stream(0, 1, two), set.stream(1, 0, two)};
  for (int rank = 0; rank < 2; ++rank) {
    const StreamEnd theirs = ends[1 - rank].in;
    const Walk both = {0, 1, 2, 2};
    set.flow(rank, 0, {both, {own()}, false, {ends[rank].out}, Fold::left, "give"});
    const std::vector<StreamEnd> in_rank_order = rank == 0 ? std::vector{own(), theirs} : std::vector{theirs, own()};
    set.flow(rank, 0, {both, in_rank_order, true, {}, Fold::left, "combine"});
  }
  for (Plan& plan : set.plans) plan.slots = slots;
  return set.finish();
}

TEST(Verify, OneSlotFewerThanLeastDeadlocks) {
  EXPECT_EQ(verdict_of(two_before_one(8)).slots_least, 2);
  EXPECT_EQ(first_fault(two_before_one(2)), "no fault");
  EXPECT_TRUE(contains(first_fault(two_before_one(1)), "deadlock: rank"));
  expect_no_random_fault(two_before_one(2));
  EXPECT_TRUE(contains(random_fault(two_before_one(1), two_before_one(2)), "deadlock"));
}

TEST(Verify, TakingBeforeGivingDeadlocks) {
  PlanSet set = exchange();
  for (Plan& plan : set.plans) std::swap(plan.lanes[0].flows[0], plan.lanes[0].flows[1]);
  EXPECT_TRUE(contains(first_fault(set), "deadlock"));
  EXPECT_TRUE(contains(first_fault(set), "rank 0 lane 0 flow 0 (combine) block 0"));
  EXPECT_TRUE(contains(random_fault(set, exchange()), "deadlock"));
}

TEST(Verify, SwappedSourcesGiveTwoExpressions) {
  PlanSet set = exchange();
  std::vector<StreamEnd>& sources = set.plans[1].lanes[0].flows[1].sources;
  std::swap(sources[0], sources[1]);
  EXPECT_TRUE(contains(first_fault(set), "the result block 0 of rank 1 is (1 0)"));
  EXPECT_TRUE(contains(random_fault(set, exchange()), "wrong result"));
}

TEST(Verify, OperandsCombinedTwiceAreCounted) {
  PlanSet set = up_and_down();
  set.plans[1].lanes[0].flows[0].sources.push_back(own());
  EXPECT_TRUE(contains(first_fault(set), "the operand of rank 1 is combined 2 times"));
}

TEST(Verify, MissingOperandsAreCounted) {
  PlanSet set = up_and_down();
  std::vector<StreamEnd>& sources = set.plans[1].lanes[0].flows[0].sources;
  sources.erase(sources.begin());
  EXPECT_TRUE(contains(first_fault(set), "the operand of rank 1 is combined 0 times"));
}

TEST(Verify, DeclaredOrderIsCompared) {
  const PlanSet set = exchange();
  ExpressionPool pool;
  const auto other_order = [](int, ExpressionPool& into) {
    const ExpressionId leaves[] = {into.leaf(1), into.leaf(0)};
    return into.fold(leaves, true);
  };
  const Verdict verdict = verify(set.request, set.plans, pool, other_order);
  ASSERT_FALSE(verdict.ok());
  EXPECT_TRUE(contains(verdict.faults.front(), "the declared order is"));
}

TEST(Verify, OtherRoundingsThanDeclaredAreSaid) {
  const PlanSet set = exchange();
  ExpressionPool pool;
  const auto wide_order = [](int, ExpressionPool& into) {
    const ExpressionId leaves[] = {into.leaf(0), into.leaf(1)};
    return into.fold(leaves, false);
  };
  const Verdict verdict = verify(set.request, set.plans, pool, wide_order);
  ASSERT_FALSE(verdict.ok());
  EXPECT_TRUE(contains(verdict.faults.front(), "the declared order is (0 1), but the plans compute it with other"));
}

TEST(Verify, ARowWithoutAnOrderCombinesNothing) {
  Algorithm silent = *find_algorithm("ring");
  silent.order = nullptr;
  PlanRequest request = exchange().request;
  request.collective = Collective::allreduce;
  EXPECT_EQ(verify(silent, request).faults,
            std::vector<std::string>{"ring combines operands, so its row must declare their order"});
  request.collective = Collective::all_gather;
  EXPECT_TRUE(verify(silent, request).ok());
}

TEST(Verify, CanonicalOrderIsCompared) {
  PlanSet set = up_and_down();  // (0 (1 2)), canonical is ((0 1) 2)
  set.request.determinism = Determinism::canonical;
  EXPECT_TRUE(contains(first_fault(set), "the canonical order is"));
  PlanSet pair = exchange();
  pair.request.determinism = Determinism::canonical;
  EXPECT_EQ(first_fault(pair), "no fault");
}

TEST(Verify, RoundingOfPartialResultsIsPartOfTheExpression) {
  PlanSet narrow = up_and_down();
  PlanSet wide = up_and_down();
  for (Plan& plan : wide.plans) {
    for (Stream& stream : plan.in) stream.wide = stream.delivery == Delivery::through_slots && stream.tag == 0;
    for (Stream& stream : plan.out) stream.wide = stream.delivery == Delivery::through_slots && stream.tag == 0;
  }
  ExpressionPool pool;
  const Verdict rounded = verify(narrow.request, narrow.plans, pool);
  const Verdict unrounded = verify(wide.request, wide.plans, pool);
  ASSERT_TRUE(rounded.ok());
  ASSERT_TRUE(unrounded.ok());
  EXPECT_NE(rounded.result_expression[0], unrounded.result_expression[0]);
}

TEST(Verify, RemovedKeepLeavesAResultUnwritten) {
  PlanSet set = exchange();
  set.plans[0].lanes[0].flows[1].keep = false;
  EXPECT_TRUE(contains(first_fault(set), "the result block 0 of rank 0 is never written"));
}

TEST(Verify, KeepWhereNoResultIsWanted) {
  PlanSet set = chain();
  set.plans[0].lanes[0].flows[0].keep = true;
  EXPECT_TRUE(contains(first_fault(set), "rank 0 lane 0 flow 0 (send) block 0: keeps a block where"));
}

TEST(Verify, LenderMustOutlastItsReaders) {
  EXPECT_EQ(first_fault(lent_broadcast(true)), "no fault");
  expect_no_random_fault(lent_broadcast(true));
  bool found = false;
  for (const std::string& fault : verdict_of(lent_broadcast(false)).faults)
    found |= fault.find("may end before rank 1") != std::string::npos;
  EXPECT_TRUE(found);
  EXPECT_NE(random_fault(lent_broadcast(false), lent_broadcast(true)), "");
}

/// Rank 1 reduces block 0 of the vector that it reads in place, and rank 0 fills its own result block 0 meanwhile with
/// what it takes from `early`: in place it would overwrite what rank 1 still reads.
PlanSet overwritten_operand() {
  PlanSet set(Collective::allreduce, 2);
  Stream read;
  read.delivery = Delivery::read_in_place;
  const auto reads = set.stream(0, 1, read);
  const auto early = set.stream(1, 0);
  set.flow(0, 0, {{}, {own()}, false, {reads.out}, Fold::left, "give"});
  set.flow(0, 0, {{}, {own(), early.in}, true, {}, Fold::left, "combine"});
  set.flow(1, 0, {{}, {own()}, false, {early.out}, Fold::left, "early"});
  set.flow(1, 0, {{}, {reads.in, own()}, true, {}, Fold::left, "reduce"});
  return set.finish();
}

TEST(Verify, OperandsAreNotOverwrittenInPlace) {
  EXPECT_TRUE(contains(first_fault(overwritten_operand()),
                       "in place, rank 0 lane 0 flow 1 (combine) block 0 may overwrite the operand block 0 of rank 0 "
                       "before it is read by rank 1"));
  EXPECT_NE(random_fault(overwritten_operand(), exchange(), 300), "");
}

TEST(Verify, HandedOverResultsAreNotOverwritten) {
  // Rank 0 hands its partial result to lane 1 and keeps another value in the same block without waiting for lane 1.
  PlanSet set = up_and_down();
  Stream extra;
  extra.tag = 7;
  const auto more = set.stream(2, 0, extra);
  set.plans[2].lanes[0].flows[0].targets.push_back(more.out);
  set.flow(0, 0, {{}, {more.in}, true, {}, Fold::left, "overwrite"});
  set.finish();
  bool found = false;
  for (const std::string& fault : verdict_of(set).faults)
    found |= fault.find("(overwrite) block 0 may overwrite the result block 0 of rank 0") != std::string::npos;
  EXPECT_TRUE(found);
  EXPECT_NE(random_fault(set, up_and_down(), 300), "");
}

TEST(Verify, TwoWritersNeedAnOrder) {
  PlanSet set(Collective::broadcast, 2);
  Stream other;
  other.tag = 1;
  const auto first = set.stream(0, 1);
  const auto second = set.stream(0, 1, other);
  set.flow(0, 0, {{}, {own()}, false, {first.out, second.out}, Fold::left, "send"});
  set.flow(1, 0, {{}, {first.in}, true, {}, Fold::left, "take"});
  set.flow(1, 1, {{}, {second.in}, true, {}, Fold::left, "take again"});
  EXPECT_TRUE(contains(first_fault(set.finish()), "is written in no fixed order"));
}

TEST(Verify, BarrierHearsOfEveryRank) {
  PlanSet set(Collective::barrier, 3);
  const auto up1 = set.stream(1, 0);
  const auto up2 = set.stream(2, 0);
  const auto down1 = set.stream(0, 1);
  const auto down2 = set.stream(0, 2);
  set.flow(0, 0, {{}, {up1.in, up2.in}, false, {down1.out, down2.out}, Fold::left, "turn"});
  set.flow(1, 0, {{}, {}, false, {up1.out}, Fold::left, "up"});
  set.flow(1, 0, {{}, {down1.in}, false, {}, Fold::left, "down"});
  set.flow(2, 0, {{}, {}, false, {up2.out}, Fold::left, "up"});
  set.flow(2, 0, {{}, {down2.in}, false, {}, Fold::left, "down"});
  EXPECT_EQ(first_fault(set.finish()), "no fault");
  expect_no_random_fault(set);

  PlanSet broken = set;  // rank 0 answers rank 1 before rank 2 has said anything
  broken.plans[0].lanes[0].flows = {{{}, {up1.in}, false, {down1.out}, Fold::left, "turn"},
                                    {{}, {up2.in}, false, {down2.out}, Fold::left, "turn"}};
  EXPECT_EQ(first_fault(broken), "rank 1 may leave the barrier before rank 2 has entered");
  EXPECT_TRUE(contains(random_fault(broken, set), "before all have entered"));
}

TEST(Verify, TokensAreNotData) {
  PlanSet set = chain();
  set.plans[0].lanes[0].flows[0].sources.clear();
  EXPECT_TRUE(contains(first_fault(set), "takes a token for data"));
}

}  // namespace
}  // namespace torii::tests
