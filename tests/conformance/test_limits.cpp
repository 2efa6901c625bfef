// SPDX-License-Identifier: Apache-2.0
// The most ranks of a team: what rows plan for 1024 of them, that it fits in the memory set aside for plans, that such
// a team runs, and that one with a rank more is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "api/team.hpp"
#include "collectives/catalogue.hpp"
#include "collectives/selection.hpp"
#include "runtime/installed_plan.hpp"
#include "runtime/status.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::testing {
namespace {

constexpr int kRanksMost = 1024;

/// A node, a ring and a torus of nodes, and nodes that many ranks share.
std::vector<Topology> shapes_of(int ranks) {
  std::vector<Topology> shapes = {Topology::node(ranks), Topology::parse("torus:" + std::to_string(ranks), ranks),
                                  Topology::parse("torus:1*" + std::to_string(ranks), ranks)};
  int side = 1;
  while ((side + 1) * (side + 1) <= ranks) ++side;
  while (ranks % side != 0) --side;
  const auto text = [](int first, int second) { return std::to_string(first) + "x" + std::to_string(second); };
  if (side > 1) shapes.push_back(Topology::parse("torus:" + text(side, ranks / side), ranks));
  if (side > 1) shapes.push_back(Topology::parse("mesh:" + text(side, ranks / side), ranks));
  if (ranks % 2 == 0) shapes.push_back(Topology::parse("torus:2*" + std::to_string(ranks / 2), ranks));
  if (ranks % 8 == 0) shapes.push_back(Topology::parse("torus:2x2x2*" + std::to_string(ranks / 8), ranks));
  return shapes;
}

std::vector<PlanRequest> requests_on(const Topology& topology) {
  std::vector<PlanRequest> requests;
  for (int collective = 0; collective < kCollectiveCount; ++collective) {
    for (const Determinism determinism : {Determinism::run, Determinism::canonical}) {
      PlanRequest request;
      request.collective = static_cast<Collective>(collective);
      request.topology = topology;
      request.root = has_root(request.collective) ? topology.ranks() / 3 : 0;
      request.determinism = determinism;
      request.wide_wire = combines(request.collective);
      if (determinism == Determinism::run || combines(request.collective)) requests.push_back(request);
    }
  }
  return requests;
}

std::string text_of(const PlanRequest& request) {
  return std::string(name(request.collective)) + " on " + request.topology.text() + " of " +
         std::to_string(request.topology.ranks()) + ", " + std::string(name(request.determinism));
}

bool is_served(const PlanRequest& request) {
  return std::ranges::any_of(catalogue(),
                             [&](const Algorithm& algorithm) { return algorithm.why_not(request).empty(); });
}

/// The refusal names the call, and why those rows refuse that serve the collective elsewhere.
void expect_refused(const PlanRequest& request) {
  try {
    (void)select(TuneTable::built_in(), Forced{}, request, 1000);
    ADD_FAILURE() << text_of(request) << " is refused by all rows, and selected";
  } catch (const Error& error) {
    const std::string text = error.what();
    const std::string ranks = std::to_string(request.topology.ranks());
    EXPECT_EQ(error.status(), Status::unsupported);
    EXPECT_NE(text.find("no algorithm of the catalogue serves reduce_scatter of " + ranks + " ranks, canonical: "),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("node: node is for up to 256 ranks, there are " + ranks), std::string::npos) << text;
  }
}

/// A call whose algorithm the table selects is never refused for want of staging.
TEST(Limits, WhatAutoSelectsFitsInATeamsStaging) {
  int selected_plans = 0;
  int shortened = 0;
  for (const int ranks : {2, 3, 7, 16, 33, 64, 100, 256, 257, 512, kRanksMost}) {
    for (const Topology& topology : shapes_of(ranks)) {
      for (const PlanRequest& request : requests_on(topology)) {
        if (!is_served(request)) {
          // The one collective that neither trees nor halvings serve in the canonical order.
          const bool is_known = request.collective == Collective::reduce_scatter && ranks > 256 &&
                                request.determinism == Determinism::canonical;
          EXPECT_TRUE(is_known) << text_of(request) << " is served by no row";
          expect_refused(request);
          continue;
        }
        for (const bool several_nodes : {false, true}) {
          for (std::size_t bytes = 1; bytes <= std::size_t{1} << 30; bytes *= 4) {
            Selected selected =
                select(TuneTable::built_in(), Forced{}, request, bytes, several_nodes, several_nodes ? 16384 : 0);
            const std::size_t selected_bytes = selected.request.tuning.segment_bytes;
            const StagingLimit limit = {team_staging_bytes(ranks), request.wide_wire, several_nodes};
            const Plan plan = fitting_plan(selected, 0, 64, limit);
            const std::size_t segment_bytes = selected.request.tuning.segment_bytes;
            const StagingShape shape = staging_shape(plan, segment_bytes, request.wide_wire, several_nodes);
            EXPECT_LE(shape.total_bytes, limit.bytes)
                << text_of(request) << ", " << bytes << " bytes, several nodes " << several_nodes << ": "
                << selected.algorithm->name << ", segments of " << segment_bytes << ", " << plan.slots << " slots, "
                << plan.in_streams_max << " streams";
            shortened += segment_bytes < selected_bytes ? 1 : 0;
            ++selected_plans;
          }
        }
      }
    }
  }
  EXPECT_GT(selected_plans, 5000);
  EXPECT_GT(shortened, 0);
  EXPECT_LT(shortened, selected_plans / 100) << "tables should name segments that fit";
}

#ifdef TORII_TEST_LIBFABRIC
/// What that means for a caller: seven nodes with the defaults, whose first choice of a segment is too long.
TEST(Limits, ACallWithDefaultsIsNotRefusedForStaging) {
  constexpr std::size_t kCount = std::size_t{1} << 19;
  ThreadTeam options;
  options.ranks = 7;
  options.topology = "torus:7";
  options.determinism = "canonical";
  options.settings = "ARENA=1G\nTIMEOUT=30\nENGINES=1";
  for (int rank = 0; rank < options.ranks; ++rank) options.nodes.push_back(rank);
  run_as_threads(options, [](torii_context*, torii_team* team) {
    std::vector<std::uint16_t> vector(kCount, 0x3c00);  // 1
    EXPECT_EQ(torii_allreduce(team, vector.data(), vector.data(), kCount, TORII_F16, TORII_SUM), TORII_OK)
        << torii_last_error();
    EXPECT_TRUE(std::ranges::all_of(vector, [](std::uint16_t value) { return value == 0x4700; })) << "7 is expected";
  });
}
#endif

}  // namespace
}  // namespace torii::testing
