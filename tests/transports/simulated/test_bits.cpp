// SPDX-License-Identifier: Apache-2.0
// The bits of plans on virtual time are those of the same plans over shared memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "collectives/selection/catalogue.hpp"
#include "tests/conformance/plan_team.hpp"
#include "tests/support/test_run.hpp"
#include "tests/transports/simulated/calls.hpp"
#include "tools/operands.hpp"

namespace torii::simulated {
namespace {

struct Shape {
  const char* algorithm;
  const char* plan_on;  ///< what the plan is made for
  const char* runs_on;  ///< the torus that carries it
  int ranks;
};
constexpr Shape kShapes[] = {
    {"node", "node", "torus:2", 2},
    {"trinaryx3", "torus:3", "torus:3", 3},
    {"ring", "node", "torus:5", 5},
    {"binomial", "node", "torus:2x2x2", 8},
    {"rabenseifner", "node", "mesh:4x2", 8},
    {"recursive_doubling", "torus:3x3", "torus:3x3", 9},
    {"bucket", "torus:4x3", "torus:4x3", 12},
    {"floyd", "node", "torus:3x2", 6},
    {"floyd", "torus:2x2x2", "torus:2x2x2", 8},
    {"trinaryx3", "torus:3x3x3", "torus:3x3x3", 27},
    {"recursive_doubling", "torus:4x4x4", "torus:4x4x4", 64},
    {"trinaryx3", "torus:4x4x4", "torus:4x4x4", 64},
};

class Bits : public ::testing::TestWithParam<Shape> {};

/// The same plans and operands by threads over shared memory: every byte that any rank holds is equal.
TEST_P(Bits, AreThoseOfSharedMemory) {
  const Shape& shape = GetParam();
  if (shape.ranks > 12 && !tests::is_full())
    GTEST_SKIP() << "more threads than a short test should start; TORII_TEST_FULL runs it";
  for (const Collective collective :
       {Collective::allreduce, Collective::broadcast, Collective::reduce, Collective::alltoall}) {
    PlanRequest request = request_on(shape.plan_on, shape.ranks, 512, collective);
    request.tuning = {.segment_bytes = 512, .slots = 4, .window = 2};
    request.root = has_root(collective) ? shape.ranks - 1 : 0;
    if (!find_algorithm(shape.algorithm)->why_not(request).empty()) continue;
    for (const std::size_t length : {std::size_t{9}, std::size_t{4001}}) {
      const std::size_t count = length * static_cast<std::size_t>(has_block_per_rank(collective) ? shape.ranks : 1);
      tests::PlanRun real = tests::make_run(shape.algorithm, request, count);
      const tests::PlanOutcome expected = tests::run_plans(
          real, [&](int rank, int, std::byte* out) { fill_operand(real.type, 5, rank, 0, count, out); });
      ASSERT_TRUE(expected.ok());
      Call call = make_call(shape.algorithm, request, count * sizeof(float));
      call.network.topology = Topology::parse(shape.runs_on, shape.ranks);
      call.network.jitter_us = 5;
      call.shape.fold = kernels::find(real.op, real.type, kernels::Isa::reference);
      call.fill = [&](int rank, std::byte* out) { fill_operand(real.type, 5, rank, 0, count, out); };
      const Outcome got = run(call);
      for (int rank = 0; rank < shape.ranks; ++rank) {
        const bool is_root = has_root(collective) && rank == request.root;
        // In a broadcast the root's operand is its result, but the plan does not write it.
        if (collective == Collective::reduce ? !is_root : is_root) continue;
        EXPECT_TRUE(got.results[static_cast<std::size_t>(rank)] == expected.results[static_cast<std::size_t>(rank)][0])
            << name(collective) << " of " << count << ", rank " << rank;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Bits, ::testing::ValuesIn(kShapes), [](const auto& shape) {
  return std::string(shape.param.algorithm) + "_" + std::to_string(shape.param.ranks);
});

}  // namespace
}  // namespace torii::simulated
