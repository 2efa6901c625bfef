// SPDX-License-Identifier: Apache-2.0
// The directed links that a message crosses between two nodes of a torus, mesh or tree. Pure arithmetic.
#pragma once

#include <vector>

#include "runtime/topology/topology.hpp"

namespace torii {

/// The number of a directed link: 6 x the node that it leaves + 2 x dimension + (0 along +, 1 along -); on a tree
/// 2 x link + direction. A number need not exist, because a mesh has ends: link_exists().
using LinkId = int;

constexpr int link_numbers(int nodes) { return 6 * nodes; }
/// An upper limit of all link numbers, exclusive.
int link_numbers(const Topology& topology) noexcept;
constexpr LinkId link_id(int node, int dimension, int direction) {
  return 6 * node + 2 * dimension + (direction > 0 ? 0 : 1);
}
bool link_exists(const Topology& topology, LinkId link) noexcept;
/// The number of directed links; 0 on a node.
int link_count(const Topology& topology) noexcept;

/// Appends the links of the path from rank `from` to rank `to` in dimension order (x, y, z), in the shorter direction
/// if the dimension wraps. Half-way round, `ties` chooses the direction if it is set and the topology lets the sender
/// choose (Topology::selects_ties()). Otherwise the sign of the coordinates' difference is the direction, and an odd
/// `turn` reverses it. So the streams of a pair of ranks can alternate between both cables of a dimension of extent 2.
/// Appends nothing between ranks of one node. On a tree there is only one path.
void append_route(const Topology& topology, int from, int to, int turn, std::vector<LinkId>& links,
                  const Ties& ties = {});

/// Directions of ties that load both directions of a ring equally if all its ranks send half-way round: + from even
/// coordinates, - from odd ones. 0 in dimensions without a tie, and if the topology leaves no choice.
Ties balanced_ties(const Topology& topology, int from, int to) noexcept;

}  // namespace torii
