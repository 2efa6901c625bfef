// SPDX-License-Identifier: Apache-2.0
// Computes the paths between all pairs of ranks.
#include "collectives/schedules/schedule_model.hpp"

#include <algorithm>
#include <cmath>

namespace torii::scheduling {

Model::Model(const TreeTopology& tree, std::size_t bytes, bool with_latency)
    : tree_(&tree), bytes_(static_cast<double>(std::max<std::size_t>(bytes, 1))), with_latency_(with_latency) {
  // An upper bound of any schedule: all transfers one after the other over the slowest link, with all latencies.
  std::int64_t slowest = INT64_MAX;
  double latency_s = 0;
  for (const TreeLink& link : tree.links()) {
    slowest = std::min({slowest, link.bandwidth[0], link.bandwidth[1]});
    latency_s += 1e-9 * static_cast<double>(link.latency_ns[0] + link.latency_ns[1]);
  }
  const double longest_s = ranks() * (bytes_ / static_cast<double>(slowest) + latency_s);
  ticks_per_second_ = std::pow(10.0, std::floor(std::log10(0x1p60 / longest_s)));
  ways_.resize(at(ranks()) * at(ranks()));
  for (int rank = 0; rank < ranks(); ++rank) add_ways_from(rank);
}

Ticks Model::latency(TreeHop hop) const {
  if (!with_latency_) return 0;
  const std::int64_t latency_ns = tree_->links()[at(hop.link)].latency_ns[at(hop.direction)];
  return std::llround(static_cast<double>(latency_ns) * 1e-9 * ticks_per_second_);
}

Ticks Model::duration(std::int64_t rate) const {
  return std::llround(bytes_ / static_cast<double>(rate) * ticks_per_second_);
}

void Model::add_ways_from(int rank) {
  struct Open {
    int node;
    int from;
  };
  std::vector<Hop> way;
  std::vector<Open> open = {{tree_->node_of(rank), -1}};
  std::vector<std::size_t> depths = {0};
  while (!open.empty()) {
    const auto [node, from] = open.back();
    const std::size_t depth = depths.back();
    open.pop_back();
    depths.pop_back();
    way.resize(depth);
    if (depth != 0) {
      // `way` now holds all hops before this node; append the hop that leads here.
      for (const TreeHop hop : tree_->hops(from)) {
        if (tree_->reaches(hop) != node) continue;
        const Ticks before =
            depth == 1 ? 0 : way[depth - 2].before + latency({way[depth - 2].link, way[depth - 2].direction});
        way[depth - 1] = {resource(hop), hop.link, hop.direction, node, before};
      }
    }
    const int receiver = tree_->nodes()[at(node)].rank;
    if (receiver >= 0 && depth != 0) {
      Way& found = ways_[at(rank) * at(ranks()) + at(receiver)];
      found = {INT64_MAX, 0, 0, hops_.size(), depth};
      for (const Hop& hop : way) {
        found.rate = std::min(found.rate, bandwidth({hop.link, hop.direction}));
        found.latency += latency({hop.link, hop.direction});
        hops_.push_back(hop);
      }
      found.duration = duration(found.rate);
    }
    for (const TreeHop hop : tree_->hops(node)) {
      if (tree_->reaches(hop) == from) continue;
      open.push_back({tree_->reaches(hop), node});
      depths.push_back(depth + 1);
    }
  }
}

}  // namespace torii::scheduling
