// SPDX-License-Identifier: Apache-2.0
// The topologies of golden cells, each with a name that does not depend on how a topology prints itself.
#pragma once

#include <string>
#include <vector>

#include "runtime/topology/topology.hpp"

namespace torii::golden {

struct NamedShape {
  std::string name;
  Topology topology;
  bool all_variants = false;  ///< plans.txt: other roots, determinism, wire and tunings too
};

std::vector<NamedShape> plan_shapes();
std::vector<NamedShape> selection_shapes();
/// "node:5", or what Topology::parse() reads.
NamedShape shape_of(const std::string& text, int ranks, bool all_variants = false);
/// Hosts on the switch of each site, with a long link between sites.
NamedShape sites_shape(const std::vector<int>& sizes, bool all_variants = false);

}  // namespace torii::golden
