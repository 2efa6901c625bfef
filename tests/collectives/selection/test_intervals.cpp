// SPDX-License-Identifier: Apache-2.0
// The lengths for which select() says that its choice holds: it chooses the same for all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "collectives/building/floyd_model.hpp"
#include "collectives/selection/catalogue.hpp"
#include "collectives/selection/selection.hpp"
#include "runtime/base/status.hpp"
#include "tests/collectives/algorithms/cluster_trees.hpp"

namespace torii {
namespace {

/// What `select` chooses for a length, in comparable form.
std::string choice_text(const Selected& selected) {
  const auto& [segment_bytes, slots, window, one_shot, radix, common_root, lanes] = selected.request.tuning;
  return std::string(selected.algorithm->name) + " segment " + std::to_string(segment_bytes) + " slots " +
         std::to_string(slots) + " window " + std::to_string(window) + (one_shot ? " one shot" : "") + " radix " +
         std::to_string(radix) + " root " + std::to_string(common_root) + " lanes " +
         std::string(lanes.begin(), lanes.end());
}

/// At both ends of the interval, one byte inside and outside of them, and in the middle.
void expect_choice_to_hold(const TuneTable& table, const Forced& forced, const PlanRequest& request, std::size_t bytes,
                           bool several_nodes) {
  const auto choose_for = [&](std::size_t length) {
    return select(table, forced, request, length, several_nodes, several_nodes ? 16384 : 0);
  };
  const Selected selected = choose_for(bytes);
  const ByteInterval holds = selected.holds;
  ASSERT_TRUE(holds.contains(bytes)) << bytes;
  const std::string text = choice_text(selected);
  for (const std::size_t at :
       {holds.least, holds.least + 1, holds.least + (holds.most - holds.least) / 2, holds.most - 1, holds.most}) {
    if (!holds.contains(at)) continue;
    const Selected there = choose_for(at);
    EXPECT_EQ(choice_text(there), text) << name(request.collective) << " of " << request.topology.ranks() << " ranks, "
                                        << request.topology.text() << ", " << at << " and " << bytes << " bytes";
    EXPECT_EQ(there.holds.least, holds.least) << at;
    EXPECT_EQ(there.holds.most, holds.most) << at;
  }
  if (holds.least > 0) {
    EXPECT_EQ(choose_for(holds.least - 1).holds.most, holds.least - 1);
  }
  if (holds.most < SIZE_MAX) {
    EXPECT_EQ(choose_for(holds.most + 1).holds.least, holds.most + 1);
  }
}

Topology tree_topology() {
  const std::string text = tests::tree_of({2, 2, 2, true, true}).text();
  return Topology::parse_tree("tree:mixed", text, 8);
}

TEST(Intervals, AChoiceHoldsForItsInterval) {
  constexpr std::array kCollectives = {Collective::allreduce,  Collective::broadcast,      Collective::reduce,
                                       Collective::all_gather, Collective::reduce_scatter, Collective::alltoall,
                                       Collective::scatter,    Collective::gather,         Collective::scan};
  std::vector<std::size_t> lengths = {0, 1};
  for (std::size_t bytes = 8; bytes <= std::size_t{1} << 30; bytes *= 2) {
    lengths.insert(lengths.end(), {bytes - 1, bytes, bytes + bytes / 3});
  }
  struct Place {
    Topology topology;
    bool several_nodes;
  };
  std::vector<Place> places;
  for (const int ranks : {1, 2, 3, 4, 7, 8, 16, 40}) {
    places.push_back({Topology::node(ranks), false});
    places.push_back({Topology::node(ranks), true});
  }
  places.push_back({Topology::parse("torus:3x3", 9), true});
  places.push_back({Topology::parse("torus:6", 6), true});
  const std::vector<int> groups = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  places.push_back({tree_topology(), true});
  places.push_back({Topology::node_of(groups), false});
  std::size_t intervals = 0;
  for (const Place& place : places) {
    for (const Collective collective : kCollectives) {
      for (const bool is_canonical : {false, true}) {
        PlanRequest request;
        request.collective = collective;
        request.topology = place.topology;
        if (has_root(collective)) request.root = place.topology.ranks() - 1;
        if (is_canonical) request.determinism = Determinism::canonical;
        std::set<std::size_t> ends;
        for (const std::size_t bytes : lengths) {
          expect_choice_to_hold(TuneTable::built_in(), {}, request, bytes, place.several_nodes);
          ends.insert(select(TuneTable::built_in(), {}, request, bytes, place.several_nodes).holds.most);
        }
        const bool has_model = place.topology.kind() != Topology::Kind::node || place.topology.per_group() != 0;
        if (!has_model && collective != Collective::alltoall) {
          EXPECT_LE(ends.size(), 24U) << name(collective) << " of " << place.topology.ranks();
        }
        intervals += ends.size();
      }
    }
  }
  EXPECT_GT(intervals, 500U);
}

/// What models say of the choice for `bytes` bytes, over what they say of the best one for exactly so many. 1 where no
/// model chooses.
double loss_by_rounding(const PlanRequest& request, std::size_t bytes, bool several_nodes) {
  const Selected selected = select(TuneTable::built_in(), {}, request, bytes, several_nodes);
  double best_s = CostEstimate{}.seconds;
  double chosen_s = CostEstimate{}.seconds;
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.estimate == nullptr) continue;
    const CostEstimate estimate = algorithm.estimate({request, bytes, several_nodes, {}, false});
    best_s = std::min(best_s, estimate.seconds);
    if (&algorithm == selected.algorithm) chosen_s = estimate.seconds;
  }
  if (selected.algorithm->name == "floyd" && chosen_s < CostEstimate{}.seconds) {
    const auto ranks = static_cast<std::size_t>(request.topology.ranks());
    chosen_s = floyd_seconds(floyd_cost(request.topology, selected.request.tuning.radix), bytes / ranks);
  }
  return chosen_s < CostEstimate{}.seconds ? chosen_s / best_s : 1;
}

/// Models see lengths rounded up (collectives/selection/modelled_bytes.hpp). The most, 1.028, is beside the shortest
/// segment of `scheduled`, whose lengths are steps themselves.
TEST(Intervals, RoundingCostsLittle) {
  double most = 1;
  const auto add = [&](const PlanRequest& request, bool several_nodes) {
    for (std::size_t bytes = 64; bytes < std::size_t{1} << 26; bytes += bytes / 32) {
      const double loss = loss_by_rounding(request, bytes, several_nodes);
      most = std::max(most, loss);
      EXPECT_LE(loss, 1.03) << name(request.collective) << " of " << request.topology.text() << ", " << bytes
                            << " bytes";
    }
  };
  PlanRequest request;
  request.collective = Collective::alltoall;
  for (const int ranks : {3, 5, 8, 16, 40, 64, 100}) {
    request.topology = Topology::node(ranks);
    add(request, true);
  }
  request.topology = Topology::parse("torus:4x4x4", 64);
  add(request, true);
  for (const Collective collective : {Collective::broadcast, Collective::reduce, Collective::allreduce,
                                      Collective::all_gather, Collective::scatter, Collective::gather}) {
    request.collective = collective;
    request.topology = tree_topology();
    add(request, true);
    request.topology = Topology::node_of(std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
    add(request, false);
  }
  EXPECT_GT(most, 1) << "no choice was rounded";
}

TEST(Intervals, AForcedChoiceHoldsForItsInterval) {
  PlanRequest request;
  request.collective = Collective::broadcast;
  request.topology = Topology::node(4);
  for (const char* const algorithm : {"node", "binomial", "chain", "scheduled"}) {
    Forced forced;
    forced.algorithm = algorithm;
    for (const std::size_t segment_bytes : {0, 512, 65536}) {
      forced.segment_bytes = segment_bytes;
      for (const std::size_t bytes : {0, 1, 511, 512, 513, 2048, 2049, 100000, 10000000}) {
        try {
          expect_choice_to_hold(TuneTable::built_in(), forced, request, bytes, false);
        } catch (const Error& error) {
          EXPECT_EQ(error.status(), Status::unsupported);
        }
      }
    }
  }
}

}  // namespace
}  // namespace torii
