// SPDX-License-Identifier: Apache-2.0
// Ranks on several nodes: peers that are not mapped, puts that arrive late and in any order. No bit changes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/collectives/algorithms/cluster_trees.hpp"
#include "tests/conformance/plan_team.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

struct Shape {
  std::string_view algorithm;
  std::string_view topology;
  int ranks;
};
constexpr Shape kShapes[] = {
    {"trinaryx3", "torus:3x2", 6}, {"trinaryx3", "mesh:3x2", 6},      {"node", "node", 5},
    {"ring", "node", 5},           {"recursive_doubling", "node", 5}, {"binomial", "node", 6},
    {"rabenseifner", "node", 4},   {"bucket", "torus:3x2", 6},        {"bucket", "mesh:3x2", 6},
    {"bucket", "torus:3*2", 6},    {"trinaryx3", "torus:3*2", 6},     {"scheduled", "node", 6},
    {"chain", "node", 5},          {"multilane", "sites", 5}};

/// "sites" are one of two ranks and one of three.
Topology topology_of(const Shape& shape) {
  if (shape.topology == "sites") return Topology::of_tree(tests::sites_tree({2, 3}), "sites");
  return Topology::parse(shape.topology, shape.ranks);
}

/// Every rank by itself; pairs; one node with all but the last rank; neighbours never together.
std::vector<std::vector<int>> node_lists(int ranks) {
  std::vector<std::vector<int>> lists(4);
  for (int rank = 0; rank < ranks; ++rank) {
    lists[0].push_back(rank);
    lists[1].push_back(rank / 2);
    lists[2].push_back(rank == ranks - 1 ? 1 : 0);
    lists[3].push_back(rank % 2);
  }
  return lists;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSlow = true;
#else
constexpr bool kIsSlow = false;
#endif

bool is_short_run() { return kIsSlow && !is_full(); }

/// Whether vectors are in place: both, but only one of the two, in turn, under a sanitizer, which takes its time for
/// megabytes. Every collective and both widths then still meet both.
std::vector<bool> places(std::size_t turn) {
  if (is_short_run()) return {turn % 2 == 0};
  return {false, true};
}

class Nodes : public ::testing::TestWithParam<Shape> {};

void change_no_bit(const Shape& shape, std::uint64_t seed) {
  int runs = 0;
  for (const Collective collective : {Collective::allreduce, Collective::broadcast, Collective::reduce}) {
    PlanRequest request;
    request.collective = collective;
    request.topology = topology_of(shape);
    request.root = collective == Collective::allreduce ? 0 : shape.ranks - 2;
    request.tuning.segment_bytes = 512;
    // A line's inline payload; less than a segment; many segments.
    for (const std::size_t count : {std::size_t{9}, std::size_t{100}, std::size_t{4001}}) {
      // From 8 slots on several messages share a credit, and calls end in the middle of such a group.
      request.tuning.slots = count == 100 ? 16 : count == 4001 ? 8 : 4;
      request.tuning.window = request.tuning.slots / 2;
      if (!find_algorithm(shape.algorithm)->why_not(request).empty()) continue;
      PlanRun run = make_run(shape.algorithm, request, count);
      run.calls = 3;
      const FillOperand fill = filler(run);
      const PlanOutcome together = run_plans(run, fill);
      ASSERT_TRUE(together.ok());
      EXPECT_EQ(together.distant_puts, 0U);
      for (const std::vector<int>& nodes : node_lists(shape.ranks)) {
        run.nodes = nodes;
        run.allocated = runs % 2 == 0;
        run.program = runs % 3 == 0;
        run.faults.seed = seed * 1000 + static_cast<std::uint64_t>(++runs);
        const PlanOutcome apart = run_plans(run, fill);
        ASSERT_TRUE(apart.ok()) << name(collective) << ", run " << runs << ", nodes of the last two ranks "
                                << nodes[nodes.size() - 2] << ' ' << nodes.back();
        EXPECT_GT(apart.distant_puts, 0U);
        EXPECT_TRUE(apart.has_results_of(together)) << name(collective) << " of " << count << ", run " << runs;
      }
    }
  }
  EXPECT_GT(runs, 0);
}

TEST_P(Nodes, ChangeNoBit) {
  for (const Seed& seed : seeds_of("conformance_nodes/puts", 1)) {
    SCOPED_TRACE(seed);
    change_no_bit(GetParam(), seed.value);
  }
}

/// Puts that take their payload out of the caller's vectors, as late as a provider may, even where a later step could
/// store there or the next call's operand is written there.
void put_from_vectors(const Shape& shape, std::uint64_t seed) {
  std::uint64_t puts_from_vectors = 0;
  std::uint64_t runs = 0;
  std::size_t turn = 0;
  for (const Collective collective : {Collective::allreduce, Collective::broadcast, Collective::reduce}) {
    for (const bool wide : {false, true}) {
      // A reduce has the sums of an allreduce, a broadcast its copies: one wire is enough for each of them.
      if (is_short_run() && collective != Collective::allreduce && wide != (collective == Collective::reduce)) continue;
      PlanRequest request;
      request.collective = collective;
      request.topology = topology_of(shape);
      request.root = collective == Collective::allreduce ? 0 : shape.ranks - 2;
      request.wide_wire = wide;
      request.tuning.segment_bytes = 16384;
      request.tuning.slots = 4;
      request.tuning.window = 2;
      if (!find_algorithm(shape.algorithm)->why_not(request).empty()) continue;
      // bucket divides the vector most: its blocks, too, are long enough to leave from where they stand.
      PlanRun run = make_run(shape.algorithm, request, shape.algorithm == "bucket" ? 120'001 : 40'001);
      if (wide) run.type = Type::f16;
      // The operand of a second call is written where puts of the first may still read; a third has nothing new.
      run.calls = is_short_run() ? 2 : 3;
      const FillOperand fill = filler(run);
      const PlanOutcome together = run_plans(run, fill);
      ASSERT_TRUE(together.ok());
      run.allocated = true;
      run.gathers = true;
      ++turn;  // the number of lists is even: the next request plays each of them the other way
      std::size_t list = 0;
      for (const std::vector<int>& nodes : node_lists(shape.ranks)) {
        // Under a sanitizer half of the lists with each wire.
        if (is_short_run() && ++list % 2 == (wide ? 1 : 0)) continue;
        run.nodes = nodes;
        for (const bool in_place : places(turn++)) {
          run.in_place = in_place;
          run.faults.seed = seed * 1000 + ++runs;
          const PlanOutcome apart = run_plans(run, fill);
          ASSERT_TRUE(apart.ok()) << name(collective) << ", run " << runs;
          for (std::size_t rank = 0; rank < apart.results.size(); ++rank) {
            // A reduce has its result at the root alone; the root of a broadcast has none but its operand.
            const bool is_root = static_cast<int>(rank) == request.root;
            if (collective != Collective::allreduce && is_root != (collective == Collective::reduce)) continue;
            EXPECT_TRUE(apart.has_results_of(together, rank))
                << name(collective) << (wide ? " wide" : "") << (in_place ? " in place" : "") << ", run " << runs;
          }
          puts_from_vectors += apart.puts_from_vectors;
        }
      }
    }
  }
  EXPECT_GT(puts_from_vectors, 0U);
}

TEST_P(Nodes, PutsFromVectorsChangeNoBit) {
  for (const Seed& seed : seeds_of("conformance_nodes/vectors", 1)) {
    SCOPED_TRACE(seed);
    put_from_vectors(GetParam(), seed.value);
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Nodes, ::testing::ValuesIn(kShapes), [](const auto& test) {
  const std::string_view topology = test.param.topology;
  const bool shares = topology.find('*') != std::string_view::npos;
  return std::string(test.param.algorithm) + (topology.starts_with("mesh") ? "_mesh" : shares ? "_pairs" : "");
});

}  // namespace
}  // namespace torii::tests
