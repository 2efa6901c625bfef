// SPDX-License-Identifier: Apache-2.0
// Cuts a tree at its long links.
#include "collectives/building/sites.hpp"

#include <algorithm>
#include <limits>

#include "runtime/base/index.hpp"

namespace torii {
namespace {

bool is_long(const TreeLink& link) { return std::max(link.latency_ns[0], link.latency_ns[1]) >= kLongLatencyNs; }

/// Ranks that can be reached from `start` without a long link.
std::vector<int> ranks_around(const TreeTopology& tree, int start, std::vector<bool>& reached) {
  std::vector<int> ranks;
  std::vector<int> open = {start};
  reached[index(start)] = true;
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    if (const int rank = tree.nodes()[index(node)].rank; rank >= 0) ranks.push_back(rank);
    for (const TreeHop hop : tree.hops(node)) {
      const int next = tree.reaches(hop);
      if (reached[index(next)] || is_long(tree.links()[index(hop.link)])) continue;
      reached[index(next)] = true;
      open.push_back(next);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

/// The rate between a rank and the end of its site, by the narrowest link and direction. It is that of the rank in the
/// middle, because one slow host, or a badly measured one, says nothing about the others.
double middle_rate(const TreeTopology& tree, const std::vector<int>& ranks, int gateway) {
  std::vector<double> rates;
  for (const int rank : ranks) {
    double& least = rates.emplace_back(std::numeric_limits<double>::infinity());
    for (const TreeHop hop : tree.way(tree.node_of(rank), gateway)) {
      for (const std::int64_t bandwidth : tree.links()[index(hop.link)].bandwidth) {
        least = std::min(least, static_cast<double>(bandwidth));
      }
    }
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

}  // namespace

Sites sites_of(const TreeTopology& tree) {
  Sites sites;
  sites.of_rank.assign(index(tree.ranks()), 0);
  std::vector<bool> reached(tree.nodes().size(), false);
  for (int rank = 0; rank < tree.ranks(); ++rank) {
    if (reached[index(tree.node_of(rank))]) continue;
    const int site = static_cast<int>(sites.ranks.size());
    sites.ranks.push_back(ranks_around(tree, tree.node_of(rank), reached));
    for (const int member : sites.ranks.back()) sites.of_rank[index(member)] = site;
  }
  return sites;
}

SiteWay way_between(const TreeTopology& tree, const Sites& sites, int from, int to) {
  const std::vector<int>& senders = sites.ranks[index(from)];
  const std::vector<int>& receivers = sites.ranks[index(to)];
  const int start = tree.node_of(senders.front());
  const std::vector<TreeHop> hops = tree.way(start, tree.node_of(receivers.front()));
  const auto crosses = [&](TreeHop hop) { return is_long(tree.links()[index(hop.link)]); };
  const auto first = std::find_if(hops.begin(), hops.end(), crosses);
  const auto last = std::find_if(hops.rbegin(), hops.rend(), crosses).base();
  const int leaves = first == hops.begin() ? start : tree.reaches(first[-1]);
  const int arrives = tree.reaches(last[-1]);
  SiteWay way;
  way.from = tree.nodes()[index(leaves)].name;
  way.to = tree.nodes()[index(arrives)].name;
  way.capacity = std::numeric_limits<double>::infinity();
  for (const TreeHop hop : hops) {
    way.latency_s += 1e-9 * static_cast<double>(tree.links()[index(hop.link)].latency_ns[index(hop.direction)]);
  }
  for (auto hop = first; hop != last; ++hop) {
    const TreeLink& link = tree.links()[index(hop->link)];
    way.capacity = std::min(way.capacity, static_cast<double>(link.bandwidth[index(hop->direction)]));
  }
  way.site_rate = std::min(middle_rate(tree, senders, leaves), middle_rate(tree, receivers, arrives));
  // Each site may be a single rank at the end of the long link itself.
  way.site_rate = std::min(way.site_rate, 1e12);
  return way;
}

std::vector<int> lane_shares(int messages, int lanes) {
  std::vector<int> shares;
  for (int lane = 0; lane < lanes; ++lane) shares.push_back(messages / lanes + (lane < messages % lanes ? 1 : 0));
  return shares;
}

}  // namespace torii
