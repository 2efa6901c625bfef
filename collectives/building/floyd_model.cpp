// SPDX-License-Identifier: Apache-2.0
// The model of floyd: each round waits for the one before it, and in a round links share their bandwidth.
#include "collectives/building/floyd_model.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "collectives/building/floyd_hops.hpp"
#include "collectives/building/sites.hpp"
#include "runtime/base/recent.hpp"
#include "runtime/base/tuned_constants.hpp"
#include "runtime/topology/network_model.hpp"
#include "runtime/topology/routing.hpp"

namespace torii {
namespace {

// A network of the kind that torii is for.
constexpr auto kLatencySeconds = tuned<double>("floyd.latency");
constexpr auto kBytesPerSecond = tuned<double>("floyd.rate");
/// A rank's one thread puts all messages and handles all blocks, whatever the number of engines.
constexpr auto kMessageSeconds = tuned<double>("floyd.message_time");
constexpr auto kBlockSeconds = tuned<double>("floyd.block_time");

constexpr std::array kRadices = {2, 3, 4, 5, 6, 8, 16};
constexpr int kRoutedRanksMax = 16384;

/// The farthest site from `site` and how far away it is.
std::pair<int, double> farthest_site(const TreeTopology& tree, const Sites& sites, int site) {
  std::pair<int, double> farthest = {site, 0};
  for (int other = 0; other < static_cast<int>(sites.ranks.size()); ++other) {
    if (other == site) continue;
    const double latency_s = way_between(tree, sites, site, other).latency_s;
    if (latency_s > farthest.second) farthest = {other, latency_s};
  }
  return farthest;
}

/// The latency of the longest way: a round is over when its last message has come. In a tree the node that is farthest
/// from any other node is an end of a longest way.
double latency_s(const Topology& topology) {
  const TreeTopology* const tree = topology.tree();
  if (tree == nullptr) return kLatencySeconds;
  const Sites sites = sites_of(*tree);
  return std::max(kLatencySeconds, farthest_site(*tree, sites, farthest_site(*tree, sites, 0).first).second);
}

double seconds(double rounds_s, double messages, double blocks, double link_bytes) {
  return rounds_s + messages * kMessageSeconds + blocks * kBlockSeconds + link_bytes / kBytesPerSecond;
}

FloydCost work_out(const Topology& topology, int radix) {
  const FloydHops hops(topology.ranks(), radix);
  FloydCost cost;
  cost.rounds = hops.rounds();
  cost.latency_s = latency_s(topology);
  const bool has_links = link_count(topology) != 0 && topology.ranks() <= kRoutedRanksMax;
  std::vector<int> load;
  std::vector<LinkId> route;
  for (int round = 0; round < cost.rounds; ++round) {
    load.assign(has_links ? static_cast<std::size_t>(link_numbers(topology)) : 1, 0);
    for (const FloydHops::Hop& hop : hops.all()) {
      if (hop.round != round) continue;
      ++cost.messages;
      const int blocks = static_cast<int>(hop.ways.size());
      cost.blocks += blocks;
      if (!has_links) {
        load.front() += blocks;
        continue;
      }
      for (int rank = 0; rank < topology.ranks(); ++rank) {
        route.clear();
        const int to = hops.to(rank, hop.distance);
        append_route(topology, rank, to, 0, route, balanced_ties(topology, rank, to));
        for (const LinkId link : route) load[static_cast<std::size_t>(link)] += blocks;
      }
    }
    cost.link_blocks += *std::max_element(load.begin(), load.end());
  }
  return cost;
}

}  // namespace

FloydCost floyd_cost(const Topology& topology, int radix) {
  static Recent<FloydCost, int, Topology> recent(64);
  return *recent.get([&] { return work_out(topology, radix); }, radix, topology);
}

double floyd_seconds(const FloydCost& cost, std::size_t block_bytes) {
  return seconds(cost.rounds * cost.latency_s, cost.messages, static_cast<double>(cost.blocks),
                 cost.link_blocks * static_cast<double>(block_bytes));
}

double message_per_pair_seconds(const Topology& topology, std::size_t block_bytes) {
  const int messages = topology.ranks() - 1;
  const double bound = topology.kind() == Topology::Kind::torus ? alltoall_bound(topology) : 0;
  const double link_blocks = bound == 0 ? messages : bound;
  return seconds(latency_s(topology), messages, messages, link_blocks * static_cast<double>(block_bytes));
}

int floyd_radix(const Topology& topology, std::size_t block_bytes) {
  int best = kRadices.front();
  double best_s = floyd_seconds(floyd_cost(topology, best), block_bytes);
  for (const int radix : kRadices) {
    if (radix > topology.ranks()) break;
    const double time_s = floyd_seconds(floyd_cost(topology, radix), block_bytes);
    if (time_s >= best_s) continue;
    best = radix;
    best_s = time_s;
  }
  return best;
}

}  // namespace torii
