// SPDX-License-Identifier: Apache-2.0
// Pictures of a simulated call: the bytes on each link, and the work of one rank's engines over time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/topology/topology.hpp"
#include "transports/simulated/network.hpp"

namespace torii::tools {

/// Self-contained SVG: an arrow for each directed link, redder with more bytes; layers of z side by side. `link_bytes`
/// by LinkId.
std::string draw_links(const Topology& topology, std::span<const std::uint64_t> link_bytes);

/// Self-contained SVG: a row for each engine, a bar for each put, one colour for each peer.
std::string draw_time_line(int rank, int engines, const std::vector<simulated::EngineUse>& uses);

}  // namespace torii::tools
