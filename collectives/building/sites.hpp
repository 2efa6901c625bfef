// SPDX-License-Identifier: Apache-2.0
// The sites of a tree of links: what lies on either side of its long links, and what leads from one to another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/topology/tree_topology.hpp"

namespace torii {

/// A link with at least this latency, in either direction, joins two sites; one with less lies within a site.
inline constexpr auto kLongLatencyNs = tuned<std::int64_t>("sites.latency_min");

/// Ranks between which no long link lies, ascending. Sites are in the order of their lowest ranks.
struct Sites {
  std::vector<std::vector<int>> ranks;  ///< by site
  std::vector<int> of_rank;             ///< the site of each rank
};
Sites sites_of(const TreeTopology& tree);

/// The way from one site to another. In a tree its first and its last long link are the same for all of their ranks. So
/// the nodes at these links, on the sites' side, name the way, in parts of the tree too.
struct SiteWay {
  std::string from;  ///< node from which the first long link leads
  std::string to;    ///< node to which the last one leads
  double latency_s = 0;
  double capacity = 0;   ///< bytes per second, of the narrowest link between the two nodes
  double site_rate = 0;  ///< bytes per second, within the slower site on the way to the rank in the middle
};
SiteWay way_between(const TreeTopology& tree, const Sites& sites, int from, int to);

/// Messages on each of `lanes` lanes, as even as can be, the root's own lane first and with the largest share.
std::vector<int> lane_shares(int messages, int lanes);

}  // namespace torii
