// SPDX-License-Identifier: Apache-2.0
// Plans give the same bits whatever the sizes of their standing rings; and a message that is said to be where no arena
// is, is not read.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "collectives/selection/catalogue.hpp"
#include "runtime/execution/installed_plan.hpp"
#include "runtime/rings/ring_area.hpp"
#include "tests/conformance/plan_team.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kSeeds = 15;
#else
constexpr std::uint64_t kSeeds = 60;
#endif

template <typename T>
T one_of(std::mt19937_64& random, const std::vector<T>& values) {
  return values[random() % values.size()];
}

bool has_blocks(Collective collective) {
  return collective == Collective::alltoall || collective == Collective::scatter || collective == Collective::gather;
}

struct Drawn {
  PlanRun run;
  std::string name;
};

/// A request that some algorithm serves.
Drawn draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  while (true) {
    PlanRequest request;
    request.collective = one_of<Collective>(
        random, {Collective::allreduce, Collective::allreduce, Collective::reduce, Collective::broadcast,
                 Collective::alltoall, Collective::alltoall, Collective::scatter, Collective::gather});
    const int ranks = one_of<int>(random, {2, 3, 4, 5, 6});
    const auto topology = random() % 4;
    request.topology = topology == 0 && ranks == 4   ? Topology::parse("torus:2x2", 4)
                       : topology == 1 && ranks == 6 ? Topology::parse("mesh:3x2", 6)
                                                     : Topology::node(ranks);
    request.root = has_root(request.collective) ? static_cast<int>(random() % static_cast<std::uint64_t>(ranks)) : 0;
    request.determinism = random() % 3 == 0 ? Determinism::canonical : Determinism::run;
    request.wide_wire = random() % 5 == 0;
    request.tuning = {.segment_bytes = one_of<std::size_t>(random, {64, 512, 4096}),
                      .slots = one_of<int>(random, {1, 2, 4, 8}),
                      .window = one_of<int>(random, {1, 2, 4}),
                      .one_shot = random() % 2 == 0,
                      .radix = 2};
    const Algorithm& row = catalogue()[random() % catalogue().size()];
    const std::size_t count = one_of<std::size_t>(random, {1, 2, 6, 14, 100, 3001}) *
                              (has_blocks(request.collective) ? static_cast<std::size_t>(ranks) : 1);
    const bool is_program = random() % 2 == 0;
    const int entries = one_of<int>(random, {8, 16, 64});
    if (!row.why_not(request).empty()) continue;
    Drawn drawn;
    drawn.run = make_run(row.name, request, count);
    drawn.run.type = request.wide_wire ? Type::f16 : Type::f32;
    drawn.run.calls = 5;
    drawn.run.program = is_program;
    drawn.run.allocated = random() % 3 == 0;
    RingSizes sizes = {ranks, 1, entries, 8, std::size_t{1} << 20};
    const RingNeeds needs = {drawn.run.slots_least, pair_streams_most(row, request, drawn.run.plans[0])};
    const auto binds = [&] {
      return binds_to_rings(drawn.run.plans[0], needs, request.tuning.segment_bytes, widening_of(Type::f16), sizes);
    };
    if (!binds()) continue;
    // Now and then the least outbox to which the plan binds: each of its calls must fit.
    if (random() % 3 == 0) {
      sizes.outbox_bytes = kLineBytes;
      while (!binds()) sizes.outbox_bytes += kLineBytes;
    }
    drawn.name = std::string(row.name) + " " + std::string(name(request.collective)) + " of " + std::to_string(count) +
                 " on " + std::to_string(ranks) + " ranks, " + std::to_string(request.tuning.slots) +
                 " slots, rings of " + std::to_string(entries);
    drawn.run.rings = sizes;
    return drawn;
  }
}

/// Beside rings of so many entries and outboxes as a team has, where hardly anybody waits.
TEST(StandingRings, TheirSizesChangeNoBit) {
  for (const Seed& one : seeds_of("conformance_standing_rings", is_full() ? 20 * kSeeds : kSeeds)) {
    SCOPED_TRACE(one);
    Drawn drawn = draw(one.value);
    SCOPED_TRACE(drawn.name);
    const PlanOutcome drawn_sizes = run_plans(drawn.run, filler(drawn.run));
    ASSERT_TRUE(drawn_sizes.ok());
    drawn.run.rings.reset();
    const PlanOutcome large = run_plans(drawn.run, filler(drawn.run));
    ASSERT_TRUE(large.ok());
    EXPECT_TRUE(drawn_sizes.has_results_of(large));
  }
}

/// A team of up to 8 ranks has enough rings for all algorithms on its node.
TEST(StandingRings, ServeAllPlansOfSmallTeams) {
  int plans = 0;
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const RingSizes sizes = ring_sizes(ranks, 2);
    for (const Algorithm& row : catalogue()) {
      for (int collective = 0; collective < kCollectiveCount; ++collective) {
        PlanRequest request;
        request.collective = static_cast<Collective>(collective);
        request.topology = Topology::node(ranks);
        request.tuning = {.segment_bytes = 4096, .slots = 8, .window = 4, .one_shot = true, .radix = 2};
        if (!row.why_not(request).empty()) continue;
        const Plan plan = row.plan(request, 0);
        ++plans;
        const RingNeeds needs = {slots_least(row, request), pair_streams_most(row, request, plan)};
        EXPECT_TRUE(binds_to_rings(plan, needs, 4096, Widening::none, sizes))
            << row.name << ' ' << name(request.collective) << " on " << ranks << " ranks: " << needs.pair_streams
            << " streams of a pair";
      }
    }
  }
  EXPECT_GT(plans, 100);
}

/// All ranks wait for room: each sends to the next one, in an outbox that holds one call's payloads.
TEST(StandingRings, AnOutboxForOneCallIsEnough) {
  PlanRequest request;
  request.topology = Topology::node(4);
  request.tuning = {.segment_bytes = 4096, .slots = 2, .window = 2};
  for (const std::string_view algorithm : {"ring", "recursive_doubling", "binomial", "node"}) {
    PlanRun run = make_run(algorithm, request, 20'000);
    run.calls = 20;
    const auto outs = static_cast<std::size_t>(std::max(run.plans[0].out_streams_max, 1));
    run.rings = RingSizes{4, 1, 8, 8, outs * 2 * 4096};
    ASSERT_TRUE(
        binds_to_rings(run.plans[0], {run.slots_least, 1}, request.tuning.segment_bytes, Widening::none, *run.rings));
    const PlanOutcome tight = run_plans(run, filler(run));
    ASSERT_TRUE(tight.ok()) << algorithm;
    run.rings.reset();
    EXPECT_TRUE(tight.has_results_of(run_plans(run, filler(run)))) << algorithm;
  }
}

/// Every rank waits for room for the blocks of all peers, each of which has one place alone.
TEST(StandingRings, AnOutboxWithOnePlaceForEachBlockIsEnough) {
  PlanRequest request;
  request.collective = Collective::alltoall;
  request.topology = Topology::node(4);
  request.tuning = {.segment_bytes = 512, .slots = 4, .window = 2};
  PlanRun run = make_run("direct", request, 4 * 3001);
  run.calls = 20;
  run.rings = RingSizes{4, 1, 8, 1, std::size_t{3} * 512};
  ASSERT_TRUE(
      binds_to_rings(run.plans[0], {run.slots_least, 1}, request.tuning.segment_bytes, Widening::none, *run.rings));
  const PlanOutcome tight = run_plans(run, filler(run));
  ASSERT_TRUE(tight.ok());
  run.rings.reset();
  EXPECT_TRUE(tight.has_results_of(run_plans(run, filler(run))));
}

TEST(StandingRings, APayloadOutsideItsSendersArenaIsNotRead) {
  PlanRequest request;
  request.collective = Collective::broadcast;
  request.topology = Topology::node(2);
  request.tuning = {.segment_bytes = 4096, .slots = 2, .window = 2};
  for (const bool program : {true, false}) {
    PlanRun run = make_run("node", request, 100);
    run.rings = RingSizes{2, 1, 8, 8, std::size_t{1} << 16};
    run.program = program;
    EXPECT_TRUE(run_plans(run, filler(run)).ok());
    run.arena_ends_at = 4096;
    const PlanOutcome outcome = run_plans(run, filler(run));
    EXPECT_EQ(outcome.status[1], Status::transport);
    EXPECT_NE(outcome.refusals[1].find("400 bytes"), std::string::npos) << outcome.refusals[1];
    EXPECT_NE(outcome.refusals[1].find("which has 4096 bytes"), std::string::npos) << outcome.refusals[1];
  }
  request.collective = Collective::alltoall;
  request.tuning.one_shot = false;
  PlanRun exchange = make_run("direct", request, 2000);
  exchange.rings = RingSizes{2, 1, 8, 8, std::size_t{1} << 16};
  ASSERT_TRUE(exchange.plans[0].exchange.exists());
  EXPECT_TRUE(run_plans(exchange, filler(exchange)).ok());
  exchange.arena_ends_at = 4096;
  const PlanOutcome outcome = run_plans(exchange, filler(exchange));
  EXPECT_EQ(outcome.status[1], Status::transport);
  EXPECT_NE(outcome.refusals[1].find("4000 bytes"), std::string::npos) << outcome.refusals[1];
}

}  // namespace
}  // namespace torii::tests
