// SPDX-License-Identifier: Apache-2.0
// Dimension-order routing on tori and meshes, and paths through trees.
#include "runtime/topology/routing.hpp"

#include <cstdlib>

namespace torii {
namespace {

/// The steps along one dimension; the sign is the direction. `tie` chooses the direction half-way round, or `turn` if
/// `tie` is 0.
int signed_distance(int extent, bool wraps, int from, int to, int turn, int tie) {
  const int inside = to - from;
  if (!wraps) return inside;
  const int around = inside > 0 ? inside - extent : inside + extent;
  if (std::abs(inside) == std::abs(around)) {
    if (tie != 0) return tie * std::abs(inside);
    return turn % 2 == 0 ? inside : around;
  }
  return std::abs(inside) < std::abs(around) ? inside : around;
}

}  // namespace

int link_numbers(const Topology& topology) noexcept {
  return topology.tree() != nullptr ? 2 * static_cast<int>(topology.tree()->links().size())
                                    : link_numbers(topology.nodes());
}

bool link_exists(const Topology& topology, LinkId link) noexcept {
  if (topology.kind() == Topology::Kind::node) return false;
  if (topology.kind() == Topology::Kind::tree) return link < link_numbers(topology);
  return topology.neighbour(topology.rank_at(link / 6, 0), link % 6 / 2, link % 2 == 0 ? 1 : -1) >= 0;
}

int link_count(const Topology& topology) noexcept {
  int count = 0;
  for (LinkId link = 0; link < link_numbers(topology); ++link) count += link_exists(topology, link) ? 1 : 0;
  return count;
}

Ties balanced_ties(const Topology& topology, int from, int to) noexcept {
  Ties ties = {};
  if (!topology.selects_ties()) return ties;
  const Coordinates at = topology.coordinates(from);
  const Coordinates goal = topology.coordinates(to);
  for (std::size_t d = 0; d < 3; ++d) {
    const bool is_tie = topology.wraps(static_cast<int>(d)) && 2 * std::abs(goal[d] - at[d]) == topology.extents()[d];
    if (is_tie) ties[d] = at[d] % 2 == 0 ? 1 : -1;
  }
  return ties;
}

void append_route(const Topology& topology, int from, int to, int turn, std::vector<LinkId>& links, const Ties& ties) {
  if (topology.kind() == Topology::Kind::node) return;
  if (topology.kind() == Topology::Kind::tree) {
    const TreeTopology& tree = *topology.tree();
    for (const TreeHop hop : tree.way(tree.node_of(from), tree.node_of(to))) {
      links.push_back(2 * hop.link + hop.direction);
    }
    return;
  }
  Coordinates at = topology.coordinates(from);
  const Coordinates goal = topology.coordinates(to);
  for (int dimension = 0; dimension < 3; ++dimension) {
    const std::size_t d = static_cast<std::size_t>(dimension);
    const int extent = topology.extents()[d];
    if (extent == 1) continue;
    const int tie = topology.selects_ties() ? ties[d] : 0;
    const int distance = signed_distance(extent, topology.wraps(dimension), at[d], goal[d], turn, tie);
    const int direction = distance < 0 ? -1 : 1;
    for (int left = std::abs(distance); left > 0; --left) {
      links.push_back(link_id(topology.node_of(topology.rank(at)), dimension, direction));
      at[d] = (at[d] + direction + extent) % extent;
    }
  }
}

}  // namespace torii
