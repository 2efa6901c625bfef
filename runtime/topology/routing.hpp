// SPDX-License-Identifier: Apache-2.0
// Which directed links a message crosses between two nodes of a torus, mesh or tree. Pure arithmetic.
#pragma once

#include <vector>

#include "runtime/topology/topology.hpp"

namespace torii {

/// The number of a directed link: 6 x node it leaves + 2 x dimension + (0 along +, 1 along -). Not every number exists
/// (a mesh ends somewhere); link_exists() tells. On a tree 2 x link + direction.
using LinkId = int;

constexpr int link_numbers(int nodes) { return 6 * nodes; }
/// One more than the largest number of a link.
int link_numbers(const Topology& topology) noexcept;
constexpr LinkId link_id(int node, int dimension, int direction) {
  return 6 * node + 2 * dimension + (direction > 0 ? 0 : 1);
}
bool link_exists(const Topology& topology, LinkId link) noexcept;
/// How many directed links there are; 0 on a node.
int link_count(const Topology& topology) noexcept;

/// Appends the links of the way from rank `from` to rank `to` in dimension order (x, then y, then z), the shorter way
/// round where the dimension wraps. Half-way round, `ties` chooses, if it says something and the topology leaves the
/// choice to the sender (Topology::selects_ties()); otherwise the sign of the coordinates' difference does, and an odd
/// `turn` takes the opposite way, so that the streams of one pair of ranks can use both cables of a dimension of extent
/// 2 in turn. Appends nothing between ranks of one node. On a tree there is one way, whatever the turn.
void append_route(const Topology& topology, int from, int to, int turn, std::vector<LinkId>& links,
                  const Ties& ties = {});

/// The ways by which ties load both directions of a ring alike, if all its ranks send half-way round: + from even
/// coordinates, - from odd ones. Nothing in dimensions without a tie, and where the topology leaves no choice.
Ties balanced_ties(const Topology& topology, int from, int to) noexcept;

}  // namespace torii
