// SPDX-License-Identifier: Apache-2.0
// Negative controls: what the contract of bits forbids, done on purpose to plans, changes the hash. So the equal hashes
// of test_bits mean something.
#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/conformance/plan_team.hpp"
#include "tools/operands.hpp"

namespace torii::tests {
namespace {

/// The hash of rank 0's result of an allreduce.
std::uint64_t hash_of(const PlanRun& run) {
  const PlanOutcome outcome =
      run_plans(run, [&run](int rank, int, std::byte* out) { fill_operand(run.type, 7, rank, 0, run.count, out); });
  EXPECT_TRUE(outcome.ok());
  if (!outcome.ok()) return 0;
  return XXH3_64bits(outcome.results[0][0].data(), outcome.results[0][0].size());
}

PlanRequest request_on(const char* topology, int ranks) {
  PlanRequest request;
  request.topology = Topology::parse(topology, ranks);
  request.tuning = {.segment_bytes = 1024, .slots = 8, .window = 4};
  return request;
}

/// A sum of two is the same either way round; the order shows from three operands on.
bool folds_three(const Flow& flow) { return flow.sources.size() >= 3; }

PlanRun trinaryx3() { return make_run("trinaryx3", request_on("torus:3x3", 9), 5000); }

TEST(Controls, TheSameRunTwiceIsTheSameHash) { EXPECT_EQ(hash_of(trinaryx3()), hash_of(trinaryx3())); }

TEST(Controls, ASwappedChildShows) {
  PlanRun run = trinaryx3();
  const std::uint64_t right = hash_of(run);
  for (Plan& plan : run.plans) {
    for (Lane& lane : plan.lanes) {
      for (Flow& flow : lane.flows) {
        if (!folds_three(flow)) continue;
        std::swap(flow.sources[1], flow.sources[2]);
        EXPECT_NE(hash_of(run), right) << "rank " << plan.rank << ", " << flow.label;
        return;
      }
    }
  }
  FAIL() << "no rank has two children";
}

/// Combining in the order of arrival gives each step an order of its own; here each flow draws one, anew in every run.
TEST(Controls, ArrivalOrderShows) {
  std::set<std::uint64_t> hashes;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    PlanRun run = trinaryx3();
    std::mt19937 random(seed);
    for (Plan& plan : run.plans) {
      for (Lane& lane : plan.lanes) {
        for (Flow& flow : lane.flows) {
          if (folds_three(flow)) std::shuffle(flow.sources.begin(), flow.sources.end(), random);
        }
      }
    }
    hashes.insert(hash_of(run));
  }
  EXPECT_GE(hashes.size(), 3U);
}

/// Partial results that travel as float are rounded once; narrow streams round them at every rank on the way.
TEST(Controls, AnExtraRoundingShows) {
  for (const Type type : {Type::bf16, Type::f16}) {
    PlanRequest request = request_on("node", 8);
    request.wide_wire = true;
    PlanRun run = make_run("binomial", request, 5000);
    run.type = type;
    const std::uint64_t once = hash_of(run);
    run.wide = false;
    EXPECT_NE(hash_of(run), once) << name(type);
  }
}

}  // namespace
}  // namespace torii::tests
