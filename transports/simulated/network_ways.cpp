// SPDX-License-Identifier: Apache-2.0
// Links of the virtual network, and the ways over them.
#include <algorithm>
#include <cmath>

#include "runtime/base/index.hpp"
#include "transports/simulated/network.hpp"

namespace torii::simulated {

int network_link_numbers(const Topology& topology) noexcept {
  return topology.kind() == Topology::Kind::node ? 2 * topology.ranks() : link_numbers(topology);
}

void append_network_route(const Topology& topology, int from, int to, int turn, std::vector<LinkId>& links,
                          const Ties& ties) {
  if (topology.kind() != Topology::Kind::node) {
    append_route(topology, from, to, turn, links, ties);
  } else if (from != to) {
    links.insert(links.end(), {2 * from, 2 * to + 1});
  }
}

void Network::add_links() {
  const std::size_t links = index(network_link_numbers(model_.topology));
  world_->link_bytes.resize(links);
  world_->resources.resize(links + (model_.ports ? 2 * world_->ranks.size() : 0));
  const TreeTopology* const tree = model_.topology.tree();
  if (tree == nullptr) return;
  for (const TreeLink& link : tree->links()) {
    for (const std::size_t direction : {0U, 1U}) {
      world_->link_ticks.push_back(1e12 / static_cast<double>(link.bandwidth[direction]));
      world_->latencies.push_back(1000 * link.latency_ns[direction]);
    }
  }
}

Time Network::transfer(std::size_t bytes, std::uint32_t link) const noexcept {
  // 1 GB/s is a byte per 1000 ps.
  if (world_->link_ticks.empty()) {
    return static_cast<Time>(std::llround(static_cast<double>(bytes) * 1000.0 / model_.bandwidth_GBps));
  }
  return static_cast<Time>(std::llround(static_cast<double>(bytes) * world_->link_ticks[link]));
}

/// The time that an engine takes to move what a link of the same way moves in `transfer`.
Time Network::feeding(Time transfer, std::size_t engine) const noexcept {
  if (model_.engine_rates.empty()) return transfer;
  return static_cast<Time>(std::llround(static_cast<double>(transfer) / model_.engine_rates[engine]));
}

void Network::add_way(int from, int peer, std::uint64_t begin, std::uint64_t end, int turn, const Ties& ties) {
  std::vector<LinkId> links;
  append_network_route(model_.topology, from, peer, turn, links, ties);
  const auto ports = static_cast<std::uint32_t>(world_->link_bytes.size());
  Way way;
  way.peer = peer;
  way.begin = begin;
  way.end = end;
  way.first = static_cast<std::uint32_t>(world_->hops.size());
  if (model_.ports) {
    world_->hops.push_back({ports + 2 * static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(links.front())});
  }
  for (const LinkId link : links) {
    const auto number = static_cast<std::uint32_t>(link);
    const TreeTopology* const tree = model_.topology.tree();
    const bool is_half = tree != nullptr && tree->links()[number / 2].half_duplex;
    world_->hops.push_back({is_half ? number / 2 * 2 : number, number});
    way.latency += latency(number);
  }
  if (model_.ports) {
    world_->hops.push_back(
        {ports + 2 * static_cast<std::uint32_t>(peer) + 1, static_cast<std::uint32_t>(links.back())});
  }
  way.count = static_cast<std::uint32_t>(world_->hops.size()) - way.first;
  std::vector<Way>& ways = rank(from).ways;
  const auto place = std::ranges::upper_bound(ways, std::pair(peer, begin), {},
                                              [](const Way& one) { return std::pair(one.peer, one.begin); });
  std::vector<Queue>& waiting = rank(from).waiting;
  waiting.insert(waiting.begin() + (place - ways.begin()) * static_cast<std::ptrdiff_t>(queues_per_way()),
                 queues_per_way(), Queue{world_->hops[way.first].resource, {}});
  ways.insert(place, way);
}

/// The latency of all links from one rank to another, looked up once for each pair.
Time Network::way_latency(int from, int peer) noexcept {
  if (world_->latencies.empty()) return 0;
  const auto [found, is_new] = world_->way_latencies.try_emplace(std::pair(from, peer), 0);
  if (is_new) {
    std::vector<LinkId> links;
    append_network_route(model_.topology, from, peer, 0, links);
    for (const LinkId link : links) found->second += world_->latencies[index(link)];
  }
  return found->second;
}

}  // namespace torii::simulated
