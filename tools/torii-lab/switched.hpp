// SPDX-License-Identifier: Apache-2.0
// Networks of switches: sites behind long lines, and trees from a topology file. Pure, like network.hpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/torii-lab/network.hpp"

namespace torii::tools {

struct SitesOptions {
  double rate_mbit = 1000;      ///< between a host and its site's switch, each way
  double delay_ms = 8;          ///< one way between any two sites
  double capacity_mbit = 1000;  ///< of each site's long line, each way
  /// TCP's memory for received data of a stream; the peer may send about 0.7 of it ahead. 0: the system's default.
  std::size_t window_bytes = 0;
};

/// `sizes` is the number of hosts of each site, e.g. 8+8 or 4+4+2; ranks are numbered site by site. One line joins two
/// sites; lines of half the delay join more sites to a backbone. Hosts have 10.95.h.l with r + 1 = 256 h + l on
/// the device `node`; the lines' devices are wan on the switches (wan0, wan1, ... on the backbone). Throws
/// Error{invalid_argument}.
LabNetwork sites_network(std::string_view sizes, const SitesOptions& options);

/// A network of sites as a tree topology file: hosts are comm nodes, switches relays, and rates those of TCP's payload
/// on a link.
std::string sites_tree_text(const LabNetwork& network);

/// The tree of a topology file (runtime/topology/tree_topology.hpp). Each direction of a link gets its bandwidth;
/// latencies of the file have no effect. Throws Error{invalid_argument}, also for half-duplex links, because cables are
/// full duplex.
LabNetwork tree_network(const std::string& path);

}  // namespace torii::tools
