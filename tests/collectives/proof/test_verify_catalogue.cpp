// SPDX-License-Identifier: Apache-2.0
// Every row of the catalogue is proved right on every small shape, and the trees on the largest one.
#include <gtest/gtest.h>

#include <map>

#include "collectives/drawing/draw.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/selection/tune_table.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"
#include "tests/support/cpu_time.hpp"
#include "tests/support/test_run.hpp"
#include "tests/support/verify_run.hpp"

namespace torii::tests {
namespace {

/// Counts proofs per row and collective, so that a row that refuses everything is noticed.
using Proofs = std::map<std::pair<std::string, Collective>, int>;

/// Verifies the row if it takes the request; returns false after a fault, so that a broken row prints one.
bool prove(const Algorithm& algorithm, const PlanRequest& request, Proofs& proofs) {
  if (!algorithm.why_not(request).empty()) return true;
  const Verdict verdict = verify(algorithm, request);
  if (!verdict.ok()) {
    ADD_FAILURE() << algorithm.name << " " << describe(request) << ": " << verdict.faults.front();
    return false;
  }
  EXPECT_GE(verdict.slots_least, 1);
  EXPECT_LE(verdict.slots_least, request.tuning.slots);
  if (verdict.slots_least != slots_least(algorithm, request)) {
    ADD_FAILURE() << algorithm.name << " " << describe(request) << ": declares least slots of "
                  << slots_least(algorithm, request) << ", " << verdict.slots_least << " are enough";
    return false;
  }
  ++proofs[{std::string(algorithm.name), request.collective}];
  return true;
}

/// Proves every part-th request from the `turn`-th on; in short runs a half of these, and the next run the other half.
bool prove_some(const Algorithm& algorithm, const Topology& topology, const Tuning& tuning, std::size_t part,
                std::size_t turn, Proofs& proofs) {
  const std::vector<PlanRequest> requests = requests_on(topology, tuning);
  for (std::size_t i = turn % part; i < requests.size(); i += part) {
    if (!is_in_share(i / part + turn, 2)) continue;
    if (!prove(algorithm, requests[i], proofs)) return false;
  }
  return true;
}

std::vector<std::string> flow_lines(const Algorithm& algorithm, PlanRequest request, const Topology& topology) {
  std::vector<std::string> lines;
  request.topology = topology;
  if (!algorithm.why_not(request).empty()) return lines;
  for (const Plan& plan : plan_all(algorithm, request)) {
    const std::string text = draw_text(request, plan);
    lines.push_back(text.substr(text.find('\n')));
  }
  return lines;
}

/// The rows that differ in the order of one list only: some shapes are enough, but in full tests.
bool is_one_of_orders(const Algorithm& algorithm) { return algorithm.name.starts_with("a2a"); }

/// Whether the plans of a row look at more than the number of ranks. Shapes of equal size prove nothing new for others.
bool depends_on_shape(const Algorithm& algorithm) {
  const Topology node = Topology::node(12);
  for (const PlanRequest& request : requests_on(node, Tuning{})) {
    const std::vector<std::string> lines = flow_lines(algorithm, request, node);
    if (lines != flow_lines(algorithm, request, Topology::torus({3, 2, 2})) ||
        lines != flow_lines(algorithm, request, Topology::torus({4, 3, 1}, {false, false, false})))
      return true;
  }
  return false;
}

TEST(VerifyCatalogue, NodesWithAllSlotsAndWindows) {
  Proofs proofs;
  std::size_t turn = 0;
  const std::size_t part = is_full() ? 1 : 3;
  for (const Algorithm& algorithm : catalogue()) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      for (int slots = 1; slots <= 8; ++slots) {
        for (int window = 1; window <= 4; ++window) {
          for (const bool one_shot : {false, true}) {
            if (!prove_some(algorithm, Topology::node(ranks), {4096, slots, window, one_shot}, part, turn++, proofs))
              return;
          }
        }
      }
    }
    int collectives = 0;
    for (const Collective collective : kCollectives)
      collectives += proofs[{std::string(algorithm.name), collective}] > 0 ? 1 : 0;
    // multilane needs sites: test_lanes.cpp, test_tree_rows.cpp; levels needs groups: test_levels.cpp.
    EXPECT_GE(collectives, algorithm.name == "multilane" || algorithm.name == "levels" ? 0 : 1) << algorithm.name;
  }
}

/// All tori and meshes of extents 1..5, mixtures that wrap in some dimensions only, and several ranks on each node.
std::vector<Topology> small_shapes(int ranks_most) {
  std::vector<Topology> shapes;
  for (int z = 1; z <= 5; ++z) {
    for (int y = 1; y <= 5; ++y) {
      for (int x = 1; x <= 5; ++x) {
        if (x * y * z > ranks_most) continue;
        shapes.push_back(Topology::torus({x, y, z}));
        shapes.push_back(Topology::torus({x, y, z}, {false, false, false}));
        shapes.push_back(Topology::torus({x, y, z}, {true, true, false}));
        shapes.push_back(Topology::torus({x, y, z}, {false, true, true}));
        for (const int per_node : {2, 3}) {
          if (x * y * z * per_node > ranks_most / 2) continue;
          shapes.push_back(Topology::torus({x, y, z}, {true, true, true}, 3, per_node));
          shapes.push_back(Topology::torus({x, y, z}, {true, false, false}, 3, per_node));
        }
      }
    }
  }
  return shapes;
}

TEST(VerifyCatalogue, SmallToriAndMeshes) {
  Proofs proofs;
  std::size_t rows = 0;
  for (const Algorithm& algorithm : catalogue()) {
    if (!depends_on_shape(algorithm)) continue;
    ++rows;
    int turn = 0;
    for (const Topology& topology : small_shapes(is_full() ? 125 : 60)) {
      ++turn;
      if (is_one_of_orders(algorithm) && !is_full() && turn % 5 != 0) continue;
      const Tuning tuning = {4096, 1 + turn % 8, 1 + turn / 8 % 4, false};
      // All requests on shapes of up to 8 ranks; every third or tenth, in turn, on larger ones, which take longer and
      // are many: extents in any order, with and without wrapping.
      const std::size_t part = is_full() || topology.ranks() <= 8 ? 1 : topology.ranks() <= 20 ? 3 : 10;
      if (!prove_some(algorithm, topology, tuning, part, static_cast<std::size_t>(turn), proofs)) return;
    }
  }
  EXPECT_GE(rows, 2u) << "trees and rings of dimensions stand on the shape";
}

TEST(VerifyCatalogue, RankCountsOfSmallTori) {
  Proofs proofs;
  std::size_t turn = 0;
  const std::vector<int> some = {10, 12, 15, 16, 17, 25, 32, 45, 60};
  std::vector<int> all;
  for (int ranks = 1; ranks <= 64; ++ranks) all.push_back(ranks);
  for (const Algorithm& algorithm : catalogue()) {
    for (const int ranks : is_full() ? all : some) {
      if (!prove_some(algorithm, Topology::node(ranks), Tuning{}, is_full() ? 1 : 5, turn++, proofs)) return;
    }
  }
}

TEST(VerifyCatalogue, RandomRunsAgree) {
  const std::size_t count = is_full() ? 40 : 2;
  const std::vector<Seed> seeds = seeds_of("verify_catalogue_test", count);
  // A seed that failed once, or is replayed, may have done so in any cell.
  const bool takes_all = seeds.size() != count;
  std::uint64_t number = 0;
  for (const Topology& topology :
       {Topology::node(1), Topology::node(2), Topology::node(3), Topology::node(6, 2), Topology::torus({2, 2, 2}),
        Topology::torus({3, 2, 2}), Topology::torus({3, 3, 1}, {false, false, false}),
        Topology::torus({1, 1, 1}, {true, true, true}, 1, 3), Topology::torus({2, 2, 1}, {true, true, true}, 2, 2),
        Topology::torus({3, 1, 1}, {false, true, true}, 1, 3)}) {
    for (const Tuning& tuning : {Tuning{4096, 8, 4, false}, Tuning{4096, 2, 2, false}, Tuning{4096, 4, 3, true}}) {
      for (const PlanRequest& request : requests_on(topology, tuning)) {
        for (const Algorithm& algorithm : catalogue()) {
          if (!algorithm.why_not(request).empty()) continue;
          ++number;
          if (is_one_of_orders(algorithm) && !is_full() && algorithm.name != "a2at") continue;
          if (!takes_all && !is_in_share(number, 2)) continue;
          ExpressionPool pool;
          const Verdict verdict = verify(algorithm, request, pool);
          const std::vector<Plan> plans = plan_all(algorithm, request);
          const bool is_short = plans.front().blocks > 16 && !is_full() && !is_replay();
          for (const Seed& seed : seeds) {
            if (is_short && &seed == &seeds.back()) continue;
            RandomRun run = {seed.value + number, 5, 2};
            if (number % 2 == 0) run.counts_every = published_every(tuning.slots, verdict.slots_least);
            ASSERT_EQ(run_randomly(request, plans, verdict.result_expression, pool, run), "")
                << algorithm.name << " " << describe(request) << "; " << seed;
          }
        }
      }
    }
  }
}

/// Otherwise the algorithm would refuse the row's requests, or deadlock on them.
TEST(VerifyCatalogue, TuneRowsHaveTheDeclaredLeastSlots) {
  std::vector<Topology> shapes = {Topology::torus({2, 2, 2}), Topology::torus({5, 3, 1}), Topology::torus({8, 8, 8})};
  for (int ranks = 1; ranks <= 64; ++ranks) shapes.push_back(Topology::node(ranks));
  for (const TuneRow& row : TuneTable::built_in().rows()) {
    const Algorithm& algorithm = *find_algorithm(row.algorithm);
    for (const Topology& topology : shapes) {
      if (topology.ranks() < row.ranks_min || topology.ranks() > row.ranks_max) continue;
      const PlanRequest request = {row.collective, topology, 0, Determinism::run, false, row.tuning};
      EXPECT_LE(slots_least(algorithm, request), row.tuning.slots) << algorithm.name << " " << describe(request);
    }
  }
}

TEST(VerifyCatalogue, RefusalIsAFault) {
  PlanRequest request;
  request.topology = Topology::node(4);
  request.collective = Collective::allreduce;
  request.determinism = Determinism::canonical;
  const Algorithm* trinaryx3 = find_algorithm("trinaryx3");
  ASSERT_NE(trinaryx3, nullptr);
  const Verdict verdict = verify(*trinaryx3, request);
  ASSERT_FALSE(verdict.ok());
  EXPECT_NE(verdict.faults.front().find("trinaryx3 refuses this request: "), std::string::npos);
}

TEST(VerifyCatalogue, LargestTorusInSeconds) {
  for (const char* name : {"trinaryx3", "binomial"}) {
    const Algorithm* algorithm = find_algorithm(name);
    ASSERT_NE(algorithm, nullptr);
    for (const Collective collective : {Collective::broadcast, Collective::reduce, Collective::allreduce}) {
      const PlanRequest request = {collective, Topology::torus({48, 6, 32}), 0, Determinism::run, false, Tuning{}};
      const double start = cpu_seconds();
      const Verdict verdict = verify(*algorithm, request);
      const double took = cpu_seconds() - start;
      ASSERT_TRUE(verdict.ok()) << name << ": " << verdict.faults.front();
      EXPECT_LT(took, kSlower * 20) << name;
      if (std::string(name) != "trinaryx3") continue;
      // In an allreduce the trees hang from roots of their own: 43 up and 43 down.
      EXPECT_EQ(verdict.height, collective == Collective::allreduce ? 86 : 84);
      EXPECT_EQ(verdict.links_shared, 0);
      EXPECT_EQ(verdict.busiest_link_messages, 1);
    }
  }
}

/// The figures of the literature for plain dimension-order routing: links on which two messages of one step meet.
TEST(VerifyCatalogue, SharedLinksOfRecursiveDoubling) {
  const Algorithm* algorithm = find_algorithm("recursive_doubling");
  ASSERT_NE(algorithm, nullptr);
  const PlanRequest cube = {Collective::allreduce, Topology::torus({8, 8, 8}), 0, Determinism::run, false, Tuning{}};
  EXPECT_DOUBLE_EQ(verify(*algorithm, cube).links_shared_percent, 62.5);
  const Algorithm* trees = find_algorithm("trinaryx3");
  ASSERT_NE(trees, nullptr);
  const Verdict disjoint = verify(*trees, cube);
  EXPECT_EQ(disjoint.links_shared_percent, 0);
  EXPECT_LE(disjoint.height, 26);
}

TEST(VerifyCatalogue, ARowThatDeclaresTooLittleIsRefused) {
  PlanRequest request;
  request.collective = Collective::reduce;
  request.topology = Topology::node(4);
  request.tuning.slots = 4;
  Algorithm row = *find_algorithm("rabenseifner");
  EXPECT_TRUE(verify(row, request).ok());
  row.pair_streams = 1;
  const Verdict verdict = verify(row, request);
  ASSERT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.faults.front(), "rabenseifner declares at most 1 streams from a rank to another one, but has 2");
  row = *find_algorithm("neighbor_exchange");
  request.collective = Collective::all_gather;
  request.topology = Topology::node(6);
  row.slots_least = nullptr;
  EXPECT_EQ(verify(row, request).faults.front(), "neighbor_exchange declares least slots of 1, but 2 are needed");
}

}  // namespace
}  // namespace torii::tests
