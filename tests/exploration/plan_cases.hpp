// SPDX-License-Identifier: Apache-2.0
// Cases of plans from which worlds are made, and the list of these.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/exploration/network_world.hpp"
#include "tests/exploration/pair_world.hpp"
#include "tests/exploration/plan_world.hpp"
#include "tests/exploration/worlds.hpp"

namespace torii::exploration {

inline constexpr std::size_t kSegmentBytes = 64;

/// One stream from each rank to the next: rank 0's operand goes down the line.
PlanCase line(std::string name, int ranks, int slots, int window, std::vector<Call> calls,
              std::size_t segment_bytes = kSegmentBytes);
/// Plans of a row of the catalogue.
PlanCase catalogued(std::string name, std::string_view algorithm, int ranks, Collective collective, int slots,
                    int window, std::vector<Call> calls);
std::vector<Call> times(std::size_t calls, const Call& call);
/// The same between nodes, each rank alone on one.
PlanCase apart(PlanCase what);
PlanCase apart_at_once(PlanCase what);
PlanCase asleep(PlanCase what, bool sleeps_end);
/// Calls of several plans, in this order.
PlanCase in_turn(std::string name, PlanCase first, std::vector<PlanCase> others, std::vector<Call> calls);
std::string with_slots(std::string_view what, int slots);

class List {
 public:
  void add(PlanCase what, bool is_short = true) {
    const std::string name = what.name;
    list_.push_back(
        {name, is_short, [what = std::move(what)]() -> std::unique_ptr<World> {
           auto world = std::make_unique<PlanWorld>(what);
           if (what.nodes.empty()) return world;
           return std::make_unique<NetworkWorld>(std::move(world), NodesOfRanks{what.nodes, what.moves_at_once});
         }});
  }
  void add(PairCase what, bool apart = false, bool is_short = true) {
    const std::string name = what.name;
    list_.push_back({name, is_short, [what = std::move(what), apart]() -> std::unique_ptr<World> {
                       auto world = std::make_unique<PairWorld>(what);
                       if (!apart) return world;
                       NodesOfRanks nodes;
                       for (int rank = 0; rank < world->ranks(); ++rank) nodes.nodes.push_back(rank);
                       return std::make_unique<NetworkWorld>(std::move(world), std::move(nodes));
                     }});
  }
  std::vector<Listed> take() { return std::move(list_); }

 private:
  std::vector<Listed> list_;
};

/// Worlds of ranks that run plans, within a node and over a network.
void add_plans(List& list);

}  // namespace torii::exploration
