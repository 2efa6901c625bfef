// SPDX-License-Identifier: Apache-2.0
// levels: proved on nodes in groups, few messages between groups, and chosen only where its model sees a clear gain.
#include <gtest/gtest.h>

#include <string>

#include "collectives/building/levels_model.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/selection/selection.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"

namespace torii::tests {
namespace {

const Algorithm& levels() { return *find_algorithm("levels"); }

TEST(Levels, AreProvedOnNodesInGroups) {
  int proofs = 0;
  int turn = 0;
  for (const auto& [groups, per_group] :
       {std::pair{2, 2}, std::pair{2, 3}, std::pair{3, 2}, std::pair{4, 4}, std::pair{5, 2}, std::pair{3, 5}}) {
    const Topology topology = Topology::node(groups * per_group, per_group);
    for (int slots = 1; slots <= 4; ++slots) {
      const Tuning tuning = {4096, slots, 1 + turn++ % 4, false};
      for (const PlanRequest& request : requests_on(topology, tuning)) {
        if (!levels().why_not(request).empty()) continue;
        const Verdict verdict = verify(levels(), request);
        ASSERT_TRUE(verdict.ok()) << describe(request) << ": " << verdict.faults.front();
        ++proofs;
      }
    }
  }
  EXPECT_GT(proofs, 500);
}

/// Payload messages of all ranks whose other end is in another group.
int messages_between_groups(const Algorithm& algorithm, const PlanRequest& request) {
  const int per_group = request.topology.per_group();
  int messages = 0;
  for (int rank = 0; rank < request.topology.ranks(); ++rank) {
    for (const Stream& stream : algorithm.plan(request, rank).out) {
      if (stream.peer / per_group != rank / per_group) messages += stream.messages_per_segment;
    }
  }
  return messages;
}

TEST(Levels, SendLessBetweenGroups) {
  const Topology topology = Topology::node(32, 8);
  for (const Collective collective :
       {Collective::allreduce, Collective::all_gather, Collective::reduce_scatter, Collective::broadcast}) {
    const PlanRequest request = {collective, topology, 0, Determinism::run, false, {4096, 8, 4, false}};
    const int all = messages_between_groups(levels(), request);
    const int passes = collective == Collective::allreduce ? 2 : 1;
    // Each group gets, or gives, all blocks of the other groups once. In a broadcast the ranks of the root's place have
    // nothing for the root, and all ranks of other groups get a block from it.
    const int crossing = 3 * 32 * passes;
    EXPECT_EQ(all, collective == Collective::broadcast ? crossing - 3 + 24 : crossing) << name(collective);
  }
}

TEST(Levels, SayWhyNot) {
  PlanRequest request = {Collective::allreduce, Topology::node(8), 0, Determinism::run, false, {4096, 8, 4, false}};
  EXPECT_NE(levels().why_not(request).find("bind each rank to the cores of one cache"), std::string::npos);
  request.topology = Topology::node(8, 4);
  EXPECT_EQ(levels().why_not(request), "");
  request.determinism = Determinism::canonical;
  EXPECT_EQ(levels().why_not(request), "") << "groups of a power of two are subtrees of the canonical expression";
  request.topology = Topology::node(9, 3);
  EXPECT_NE(levels().why_not(request), "");
  request.determinism = Determinism::run;
  request.collective = Collective::alltoall;
  EXPECT_NE(levels().why_not(request).find("not alltoall"), std::string::npos) << levels().why_not(request);
}

std::string chosen(const Topology& topology, Collective collective, std::size_t bytes, bool several_nodes = false) {
  const PlanRequest request = {collective, topology, 0, Determinism::run, false, {}};
  return std::string(select(TuneTable::built_in(), {}, request, bytes, several_nodes).algorithm->name);
}

TEST(Levels, AreChosenWhereTheModelSeesAClearGain) {
  const Topology server = Topology::node(64, 8);
  for (const std::size_t bytes : {std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{128} << 10}) {
    EXPECT_EQ(chosen(server, Collective::allreduce, bytes), "levels") << bytes;
    EXPECT_NE(chosen(Topology::node(64), Collective::allreduce, bytes), "levels") << "nothing is known of caches";
    EXPECT_NE(chosen(server, Collective::allreduce, bytes, true), "levels") << "not between nodes";
  }
  EXPECT_EQ(chosen(server, Collective::broadcast, std::size_t{64} << 10), "levels");
  EXPECT_NE(chosen(server, Collective::allreduce, 64), "levels") << "node in one shot takes one step";
  EXPECT_NE(chosen(server, Collective::allreduce, std::size_t{4} << 20), "levels") << "rings are pipelines";
  EXPECT_NE(chosen(Topology::node(8, 4), Collective::allreduce, 8192), "levels") << "few ranks";
  EXPECT_NE(chosen(server, Collective::alltoall, std::size_t{1} << 20), "levels");
  PlanRequest request = {Collective::allreduce, Topology::node(9, 3), 0, Determinism::canonical, false, {}};
  EXPECT_NE(select(TuneTable::built_in(), {}, request, 4096, false).algorithm->name, "levels");
}

TEST(Levels, YieldToARowForNodes) {
  const TuneTable table = TuneTable::parse(
      R"({"version": 1, "rows": [{"collective": "allreduce", "topology": "node", "ranks": [1, 64], "bytes_max": null,
          "algorithm": "ring", "segment": 32768, "slots": 8, "window": 4}, "built-in node"]})",
      "a test");
  const PlanRequest request = {Collective::allreduce, Topology::node(64, 8), 0, Determinism::run, false, {}};
  EXPECT_EQ(select(table, {}, request, 65536, false).algorithm->name, "ring");
}

TEST(LevelsModel, GrowsWithBytesAndCosts) {
  LevelCall call = {Collective::allreduce, 1 << 20, 8, 8};
  const double time = levels_time_s(call);
  EXPECT_LT(time, flat_time_s(call));
  EXPECT_GT(levels_time_s(call, {.far_GBps = 8}), time);
  EXPECT_GT(levels_time_s(call, {.far_line_ns = 500}), time);
  call.bytes *= 2;
  EXPECT_GT(levels_time_s(call), time);
}

}  // namespace
}  // namespace torii::tests
