// SPDX-License-Identifier: Apache-2.0
// A rank tells its peers where its vectors stand in its arena. What lies outside is not touched: the call ends.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "tests/conformance/plan_team.hpp"
#include "tools/operands.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kCount = 5000;  // times 4 bytes, and 3 ranks

PlanRun run_of(Collective collective, const std::string& algorithm) {
  PlanRequest request;
  request.collective = collective;
  request.topology = Topology::node(3);
  request.tuning = {.segment_bytes = 512, .slots = 4, .window = 2};
  PlanRun run = make_run(algorithm, request, 3 * kCount);
  run.allocated = true;
  return run;
}

class Offers : public ::testing::TestWithParam<std::pair<Collective, std::string>> {};

TEST_P(Offers, OutsideTheArenaEndTheCall) {
  PlanRun run = run_of(GetParam().first, GetParam().second);
  EXPECT_TRUE(run_plans(run, filler(run)).ok());
  run.deadline_s = 0.3;
  constexpr std::int64_t kArena = shared_memory::kArenaBytesMin;
  for (const std::int64_t offset :
       {kArena, kArena - 64, std::int64_t{-1} << 20, std::int64_t{1} << 44, std::numeric_limits<std::int64_t>::min()}) {
    run.forged_offset = offset;
    const PlanOutcome outcome = run_plans(run, filler(run));
    int refused = 0;
    for (std::size_t rank = 1; rank < outcome.status.size(); ++rank) {
      if (outcome.status[rank] == Status::transport) {
        ++refused;
        EXPECT_NE(outcome.refusals[rank].find(" of its arena, which has 268435456 bytes"), std::string::npos)
            << outcome.refusals[rank];
      }
      EXPECT_TRUE(outcome.results[rank].empty()) << "offset " << offset << ", rank " << rank;
    }
    EXPECT_GT(refused, 0) << "offset " << offset;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Offers,
                         ::testing::Values(std::pair{Collective::broadcast, std::string("node")},
                                           std::pair{Collective::allreduce, std::string("node")},
                                           std::pair{Collective::alltoall, std::string("direct")}),
                         [](const auto& shape) { return std::string(name(shape.param.first)); });

}  // namespace
}  // namespace torii::tests
