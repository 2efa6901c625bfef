// SPDX-License-Identifier: Apache-2.0
// Plans over leaves on virtual time: the bits of E over all leaves, and the time of the canonical plan where that
// serves.
#include <gtest/gtest.h>

#include <vector>

#include "reduce_kernels/kernels.hpp"
#include "runtime/plan/leaves.hpp"
#include "tests/transports/simulated/calls.hpp"
#include "tools/operands.hpp"

namespace torii::simulated {
namespace {

constexpr std::size_t kCount = 3000;

/// E over `count` leaves from `first` on.
void sum_leaves(std::size_t first, std::size_t count, std::byte* out) {
  std::vector<std::vector<float>> leaves(count, std::vector<float>(kCount));
  std::vector<const void*> sources;
  for (std::size_t i = 0; i < count; ++i) {
    fill_operand(Type::f32, 3, static_cast<int>(first + i), 0, kCount, leaves[i].data());
    sources.push_back(leaves[i].data());
  }
  void* const target = out;
  kernels::fold_canonical(
      kernels::find(Op::sum, Type::f32, kernels::Isa::reference), Type::f32,
      {.sources = sources.data(), .source_count = static_cast<int>(count), .targets = &target, .target_count = 1},
      kCount);
}

PlanRequest request_over(const LeafIntervals& leaves) {
  PlanRequest request = request_on("node", leaves.ranks(), 4096);
  request.determinism = Determinism::canonical;
  request.leaves = &leaves;
  return request;
}

TEST(SimulatedLeaves, HaveTheirSum) {
  std::vector<std::byte> expected(kCount * sizeof(float));
  sum_leaves(0, 13, expected.data());
  for (const std::vector<std::size_t>& counts :
       {std::vector<std::size_t>{3, 7, 3}, {13}, {1, 0, 5, 6, 1}, {0, 13, 0}, {2, 3, 2, 3, 2, 1}}) {
    const LeafIntervals leaves(counts);
    for (const char* algorithm : {"node", "binomial"}) {
      Call call = make_call(algorithm, request_over(leaves), kCount * sizeof(float));
      call.shape.fold = kernels::find(Op::sum, Type::f32, kernels::Isa::reference);
      call.network.jitter_us = 5;
      call.fill = [&](int rank, std::byte* out) {
        for (const LeafSubtree& one : leaves.subtrees_of(rank)) {
          sum_leaves(one.first, one.count,
                     out + static_cast<std::size_t>(one.operand) * call.shape.operand_stride_bytes);
        }
      };
      const Outcome got = run(call);
      for (const std::vector<std::byte>& result : got.results) {
        EXPECT_TRUE(same_bytes(result, expected)) << algorithm << " on " << counts.size() << " ranks";
      }
    }
  }
}

TEST(SimulatedLeaves, TakeLongerThanRanksWhereMoreOperandsTravel) {
  const LeafIntervals shifted({3, 5, 4, 4});
  Call plain = make_call("binomial", request_on("node", 4, 4096), 1 << 20);
  Call over_leaves = make_call("binomial", request_over(shifted), 1 << 20);
  EXPECT_GT(run(over_leaves).time, run(plain).time);
}

}  // namespace
}  // namespace torii::simulated
