// SPDX-License-Identifier: Apache-2.0
// Delayed puts change no bit; failing puts end a call; a signal without order and a place that is filled whatever its
// count says are races that the thread sanitizer reports.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "runtime/execution/engine_balancer.hpp"
#include "tests/conformance/plan_team.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"
#include "tests/support/test_run.hpp"
#include "tools/operands.hpp"

namespace torii::tests {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kRacesAreSeen = true;
#else
constexpr bool kRacesAreSeen = false;
#endif

PlanRequest allreduce_on(const Topology& topology) {
  PlanRequest request;
  request.topology = topology;
  request.tuning = {.segment_bytes = 512, .slots = 4, .window = 2};
  return request;
}

struct DelayCase {
  std::string_view algorithm;
  std::string_view topology;
  int ranks;
};
constexpr DelayCase kDelayCases[] = {{"trinaryx3", "torus:2x2", 4}, {"node", "node", 3},
                                     {"ring", "node", 4},           {"recursive_doubling", "node", 3},
                                     {"binomial", "node", 4},       {"rabenseifner", "node", 4},
                                     {"bucket", "torus:2x2", 4}};

class Delays : public ::testing::TestWithParam<DelayCase> {};

TEST_P(Delays, ChangeNoBit) {
  const DelayCase& c = GetParam();
  const PlanRequest request = allreduce_on(Topology::parse(c.topology, c.ranks));
  if (!find_algorithm(c.algorithm)->why_not(request).empty())
    GTEST_SKIP() << find_algorithm(c.algorithm)->why_not(request);
  PlanRun run = make_run(c.algorithm, request, 3001);
  run.calls = 3;
  const PlanOutcome plain = run_plans(run, filler(run));
  ASSERT_TRUE(plain.ok());
  for (std::size_t rank = 1; rank < plain.results.size(); ++rank) EXPECT_EQ(plain.results[rank], plain.results[0]);
  // The same with slots enough for engines to share the work.
  PlanRequest open_request = request;
  open_request.tuning.slots = EngineBalancer::kSlotsLeast;
  open_request.tuning.window = 8;
  PlanRun open = make_run(c.algorithm, open_request, 3001);
  open.calls = run.calls;
  // A seed says the kind of fault too. Those of a run are consecutive, and each kind comes within five of them.
  for (const Seed& one : seeds_of("conformance_faults", is_full() ? 100 : kRacesAreSeen ? 5 : 10)) {
    SCOPED_TRACE(one);
    const std::uint64_t seed = one.value;
    if (seed % 2 == 0) {
      // Engines overtake each other by far, since one of them takes its time.
      open.nodes.clear();
      for (int rank = 0; rank < c.ranks; ++rank) open.nodes.push_back(seed % 4 == 0 ? rank : rank % 2);
      open.faults.seed = seed;
      open.faults.engine = static_cast<int>(seed / 2 % 4);
      open.faults.engine_us = 20 + static_cast<int>(seed % 7) * 30;
      const PlanOutcome shared = run_plans(open, filler(open));
      ASSERT_TRUE(shared.ok());
      EXPECT_TRUE(shared.has_results_of(plain));
    }
    // All engines are late, or one that is slow. Only what goes to another node is put, and arrives in any order.
    run.faults = {.seed = seed, .delayed = 0.2, .delay_us_max = seed % 2 == 0 ? 60 : 0};
    // The last of the four engines serves no pair of so few nodes.
    const auto slow = static_cast<int>(seed % 3);
    if (seed % 5 == 0) run.faults = {.seed = seed, .delayed = 1, .delay_us_max = 100, .engine = slow};
    run.nodes.clear();
    for (int rank = 0; rank < c.ranks; ++rank) {
      run.nodes.push_back(seed % 3 == 0 ? rank / 2 : seed % 3 == 1 ? rank : rank % 2);
    }
    run.allocated = seed % 3 == 0;
    const PlanOutcome delayed = run_plans(run, filler(run));
    ASSERT_TRUE(delayed.ok());
    EXPECT_GT(delayed.delays, 0U);
    EXPECT_TRUE(delayed.has_results_of(plain));
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Delays, ::testing::ValuesIn(kDelayCases),
                         [](const auto& test) { return std::string(test.param.algorithm); });

TEST_P(Delays, NorDoesTheWayOfStores) {
  const DelayCase& c = GetParam();
  PlanRequest request = allreduce_on(Topology::parse(c.topology, c.ranks));
  if (!find_algorithm(c.algorithm)->why_not(request).empty())
    GTEST_SKIP() << find_algorithm(c.algorithm)->why_not(request);
  // Messages are large enough to be stored past the caches; the odd count leaves vectors unaligned.
  request.tuning.segment_bytes = 32768;
  for (const bool program : {false, true}) {
    PlanRun run = make_run(c.algorithm, request, program ? 8191 : 70'001);
    run.calls = kRacesAreSeen ? 4 : 12;  // the thread sanitizer takes its time, and all slots are used again by then
    run.program = program;
    run.stores = StoreChoice::Way::cached;
    const PlanOutcome cached = run_plans(run, filler(run));
    ASSERT_TRUE(cached.ok());
    for (const bool allocated : {false, true}) {
      run.allocated = allocated;
      run.stores = StoreChoice::Way::non_temporal;
      const PlanOutcome non_temporal = run_plans(run, filler(run));
      ASSERT_TRUE(non_temporal.ok());
      EXPECT_TRUE(non_temporal.has_results_of(cached)) << "linear program " << program << ", allocated " << allocated;
    }
    run.stores.reset();
    const PlanOutcome chosen = run_plans(run, filler(run));
    ASSERT_TRUE(chosen.ok());
    EXPECT_TRUE(chosen.has_results_of(cached)) << "linear program " << program;
  }
}

TEST(FailingPuts, EndTheCall) {
  PlanRun run = make_run("ring", allreduce_on(Topology::node(3)), 5000);
  run.nodes = {0, 1, 2};
  run.deadline_s = 0.5;
  run.faults.puts_until_fail = 7;
  const PlanOutcome outcome = run_plans(run, filler(run));
  EXPECT_FALSE(outcome.ok());
  int failed = 0;
  for (const Status status : outcome.status) {
    // Who has put enough gets the transport's status, who waits for such a rank runs into the deadline.
    EXPECT_TRUE(status == Status::transport || status == Status::timeout) << name(status);
    failed += status == Status::transport ? 1 : 0;
  }
  EXPECT_GT(failed, 0);
  run.faults.puts_until_fail = 1'000'000;
  run.deadline_s = 20;
  EXPECT_TRUE(run_plans(run, filler(run)).ok()) << "the same run with enough puts must end";
}

/// One engine of four breaks on every rank: nobody gets a wrong result, and everybody an error before the deadline.
TEST(FailingPuts, OfOneEngineEndTheCall) {
  PlanRun run = make_run("ring", allreduce_on(Topology::node(4)), 20'000);
  run.deadline_s = 0.5;
  run.nodes = {0, 1, 2, 3};
  run.faults = {.puts_until_fail = 3, .engine = 2};
  const PlanOutcome outcome = run_plans(run, filler(run));
  int failed = 0;
  for (const Status status : outcome.status) {
    EXPECT_TRUE(status == Status::transport || status == Status::timeout) << name(status);
    failed += status == Status::transport ? 1 : 0;
  }
  EXPECT_GT(failed, 0);
  run.faults.engine = 9;  // there is none of that number
  run.deadline_s = 20;    // a busy machine takes longer than the half second in which a broken engine shows
  EXPECT_TRUE(run_plans(run, filler(run)).ok());
}

/// What engine 1 of four has carried of a vector that goes to one peer, when it takes 5 ms for a segment: far longer
/// than a busy machine lets a rank wait for its turn, else all engines would look alike.
double share_of_slow_engine(int slots) {
  PlanRequest request = allreduce_on(Topology::node(2));
  request.tuning.slots = slots;
  request.tuning.window = slots;
  PlanRun run = make_run("binomial", request, 25'600);  // 200 segments up, and 200 down
  run.nodes = {0, 1};
  run.faults = {.engine = 1, .engine_us = 5000};
  const PlanOutcome outcome = run_plans(run, filler(run));
  EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.results[0], outcome.results[1]);
  const double all = std::accumulate(outcome.engine_bytes.begin(), outcome.engine_bytes.end(), 0.0);
  return static_cast<double>(outcome.engine_bytes[1]) / all;
}

TEST(Sharing, ASlowEngineCarriesLess) {
  EXPECT_LT(share_of_slow_engine(EngineBalancer::kSlotsLeast), 0.18);
  // In rotation it gets its quarter.
  EXPECT_NEAR(share_of_slow_engine(EngineBalancer::kSlotsLeast - 1), 0.25, 0.01);
}

TEST(Sharing, WithACutEngineNobodyGetsAWrongResult) {
  PlanRequest request = allreduce_on(Topology::node(2));
  request.tuning.slots = EngineBalancer::kSlotsLeast;
  PlanRun run = make_run("binomial", request, 20'000);
  run.nodes = {0, 1};
  run.deadline_s = 0.3;
  run.faults = {.engine = 3, .engine_us = faulty::Faults::kNever};
  for (const Status status : run_plans(run, filler(run)).status) EXPECT_EQ(status, Status::timeout);
}

TEST(FailingPuts, ToALostPeerNameIt) {
  PlanRun run = make_run("ring", allreduce_on(Topology::node(3)), 5000);
  run.nodes = {0, 1, 2};
  run.deadline_s = 0.5;
  run.faults = {.puts_until_fail = 5, .lost_peer = 2};
  const PlanOutcome outcome = run_plans(run, filler(run));
  // Rank 1 alone puts payload to rank 2: the three are a ring. Rank 0 gives it credits, each for many messages.
  EXPECT_EQ(outcome.status[1], Status::peer_lost);
  EXPECT_EQ(outcome.status[2], Status::timeout);
}

TEST(FaultyTransport, DelaysFollowTheSeed) {
  PlanRun run = make_run("ring", allreduce_on(Topology::node(2)), 5000);
  run.nodes = {0, 1};
  run.faults = {.seed = 5, .delayed = 0.5};
  // How many puts a rank makes is fixed by the plan, so the number of delays is a function of the seed.
  const std::uint64_t delays = run_plans(run, filler(run)).delays;
  EXPECT_GT(delays, 0U);
  EXPECT_EQ(run_plans(run, filler(run)).delays, delays);
}

tests::Outcome planted(const std::string& fault) { return tests::run({helper("planted_fault"), fault}); }

bool reports_race(const tests::Outcome& outcome) {
  return outcome.code != 0 && outcome.output.find("WARNING: ThreadSanitizer: data race") != std::string::npos;
}

TEST(PlantedFaults, WithoutOneTheRunIsClean) {
  for (const char* const run : {"none", "none-between-nodes"}) {
    const tests::Outcome outcome = planted(run);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "");
  }
}

TEST(PlantedFaults, ASignalWithoutOrderIsReported) {
  if (!kRacesAreSeen) GTEST_SKIP() << "only the thread sanitizer sees it; x86 stores in order anyway";
  const tests::Outcome outcome = planted("relaxed-signals");
  EXPECT_TRUE(reports_race(outcome)) << outcome.output;
}

TEST(PlantedFaults, APlaceFilledBeforeItsCountIsReported) {
  if (!kRacesAreSeen) GTEST_SKIP() << "only the thread sanitizer sees it while the reader keeps up";
  const tests::Outcome outcome = planted("ignored-counts");
  EXPECT_TRUE(reports_race(outcome)) << outcome.output;
}

TEST(PlantedFaults, UnknownOnesAreRefused) { EXPECT_EQ(planted("bogus").code, 2); }

}  // namespace
}  // namespace torii::tests
