// SPDX-License-Identifier: Apache-2.0
// What short calls and teams on several nodes run is what is simulated: linear programs, and credits in groups.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "reduce_kernels/kernels.hpp"
#include "tools/operands.hpp"
#include "tools/simulation/run.hpp"

namespace torii::simulated {
namespace {

Call list_call(const Algorithm& row, const PlanRequest& request, std::size_t bytes) {
  Call call;
  call.request = request;
  call.plans = plan_all(row, request);
  call.shape = call_shape(request, call.plans.front(), Type::f32, bytes);
  call.network.topology = request.topology;
  return call;
}

void add_data(Call& call, std::size_t bytes) {
  call.shape.fold = kernels::find(Op::sum, Type::f32, kernels::Isa::reference);
  call.fill = [bytes](int rank, std::byte* out) { fill_operand(Type::f32, 7, rank, 0, bytes / sizeof(float), out); };
}

/// Every row that has a list for a vector of one segment: it takes the time of lanes, to the tick, and brings the same
/// bits. Folding takes time, so that ranks have more to wait for.
TEST(Lists, RunAsLanesDo) {
  const Topology topology = Topology::parse("torus:3x2", 6);
  int rows = 0;
  for (const Algorithm& row : catalogue()) {
    for (const Collective collective :
         {Collective::broadcast, Collective::reduce, Collective::allreduce, Collective::all_gather,
          Collective::reduce_scatter, Collective::alltoall, Collective::scan}) {
      PlanRequest request;
      request.collective = collective;
      request.topology = topology;
      request.tuning = {.segment_bytes = 8192, .slots = 8, .window = 4};
      if (!row.why_not(request).empty()) continue;
      const std::string which = std::string(row.name) + ", " + std::string(name(collective));
      constexpr std::size_t kBytes = 6 * 1000;
      Call call = list_call(row, request, kBytes);
      call.network.ports = true;
      call.reduce_GBps = 1;
      add_data(call, kBytes);
      const Outcome listed = run(call);
      call.lists = false;
      const Outcome lanes = run(call);
      EXPECT_EQ(lanes.lists, 0);
      if (listed.lists == 0) continue;
      ++rows;
      EXPECT_EQ(listed.time, lanes.time) << which;
      EXPECT_EQ(listed.messages, lanes.messages) << which;
      EXPECT_EQ(listed.credits, lanes.credits) << which;
      EXPECT_EQ(listed.results, lanes.results) << which;
      call.lists = true;
      call.fill = nullptr;
      EXPECT_EQ(run(call).time, listed.time) << which << ", without data";
    }
  }
  EXPECT_GT(rows, 9);
}

TEST(Lists, AreLeftWhereTheyWouldNotFit) {
  PlanRequest request;
  request.topology = Topology::parse("node", 600);
  request.tuning = {.segment_bytes = 8192, .slots = 8, .window = 4};
  const Algorithm& ring = *find_algorithm("ring");
  ASSERT_EQ(ring.why_not(request), "");
  EXPECT_EQ(run(list_call(ring, request, 4096)).lists, 0) << "600 ranks with 1198 steps each";
}

/// One rank sends to two others: half of the entries share a credit, as half of a ring's do in a team; with 32, which
/// engines may share, each message has its own.
TEST(Credits, GoInGroups) {
  constexpr std::size_t kSegments = 64;
  for (const auto& [slots, group] :
       {std::pair{1, 1}, std::pair{4, 2}, std::pair{6, 4}, std::pair{8, 4}, std::pair{16, 8}, std::pair{32, 1}}) {
    PlanRequest request;
    request.collective = Collective::broadcast;
    request.topology = Topology::parse("node", 3);
    request.tuning = {.segment_bytes = 1024, .slots = slots, .window = slots};
    const Algorithm& row = *find_algorithm("binomial");
    ASSERT_EQ(row.why_not(request), "");
    Call call = list_call(row, request, kSegments * 1024);
    const Outcome outcome = run(call);
    EXPECT_EQ(outcome.messages, 2 * kSegments);
    EXPECT_EQ(outcome.credits * static_cast<std::uint64_t>(group), outcome.messages) << slots << " slots";
  }
}

}  // namespace
}  // namespace torii::simulated
