// SPDX-License-Identifier: Apache-2.0
// Figures of a plan set on its topology: height, the busiest link, and links on which messages of one step meet.
#include <algorithm>
#include <map>

#include "collectives/proof/verify_checks.hpp"
#include "runtime/topology/routing.hpp"

namespace torii::verification {
namespace {

/// How many messages between ranks a step's value has behind it: the "step" of a textbook algorithm in which it is
/// sent.
std::vector<std::int32_t> message_depths(const StepTable& table, const Precedence& precedence) {
  std::vector<std::int32_t> depths(table.steps.size(), 0);
  for (const StepId step : precedence.order()) {
    for (const StepPort& target : table.targets(step)) {
      const JoinedStream& joined = table.streams[target.stream];
      std::int32_t& depth = depths[table.consumer(joined, target.message)];
      depth = std::max(depth, depths[step] + (joined.sender != joined.receiver ? 1 : 0));
    }
  }
  return depths;
}

}  // namespace

void measure_links(const Topology& topology, const StepTable& table, const Precedence& precedence, Verdict& verdict) {
  const std::vector<std::int32_t> depths = message_depths(table, precedence);
  verdict.height = depths.empty() ? 0 : *std::max_element(depths.begin(), depths.end());
  const int links = link_count(topology);
  if (links == 0) return;

  std::vector<std::int64_t> load(link_numbers(topology), 0);
  std::vector<std::int64_t> crossings;  // depth and link in one number, to find two equal ones by sorting
  std::map<std::pair<int, int>, int> turns;
  std::vector<LinkId> route;
  for (const JoinedStream& joined : table.streams) {
    if (joined.sender == joined.receiver) continue;
    route.clear();
    append_route(topology, joined.sender, joined.receiver, turns[{joined.sender, joined.receiver}]++, route,
                 joined.stream.ties);
    for (int message = 0; message < joined.stream.messages_per_segment; ++message) {
      const std::int64_t depth = depths[table.producer(joined, message)];
      for (const LinkId link : route) {
        ++load[link];
        // A bundle does not meet itself.
        if (joined.stream.ends_bundle(message)) crossings.push_back(depth * link_numbers(topology) + link);
      }
    }
  }
  verdict.busiest_link_messages = static_cast<double>(*std::max_element(load.begin(), load.end()));
  std::sort(crossings.begin(), crossings.end());
  std::vector<bool> shared(load.size(), false);
  for (std::size_t i = 1; i < crossings.size(); ++i) {
    if (crossings[i] == crossings[i - 1]) shared[crossings[i] % link_numbers(topology)] = true;
  }
  verdict.links_shared = static_cast<int>(std::count(shared.begin(), shared.end(), true));
  verdict.links_shared_percent = 100.0 * verdict.links_shared / links;
}

}  // namespace torii::verification
