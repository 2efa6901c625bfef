// SPDX-License-Identifier: Apache-2.0
// Nodes that hwloc describes in its synthetic form: a rank on each core, and what lies between the cores.
#pragma once

#include <string>

#include "runtime/topology/topology.hpp"

namespace torii::tools {

/// The beginning of a --topology that hwloc reads: "hwloc:pack:2 l3:12 core:8".
inline constexpr std::string_view kSyntheticNode = "hwloc:";

struct SyntheticNode {
  Topology groups;   ///< as a team sees the node whose ranks are bound to its cores, in order
  Topology network;  ///< a tree: cores, the caches that they share, packages
};

/// Links have the costs of LevelCosts (collectives/building/levels_model.hpp). `text` begins with kSyntheticNode.
/// Throws Error{invalid_argument} for what hwloc cannot read, and for a description without cores.
SyntheticNode read_synthetic_node(const std::string& text);

}  // namespace torii::tools
