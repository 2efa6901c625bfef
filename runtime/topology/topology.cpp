// SPDX-License-Identifier: Apache-2.0
// Tori, meshes, trees and nodes: coordinates, neighbours and parts.
#include "runtime/topology/topology.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/base/status.hpp"

namespace torii {
Topology Topology::node(int ranks, int per_group) {
  if (ranks < 1 || ranks > Topology::kRanksMax) {
    invalid("a node of " + std::to_string(ranks) + " ranks; there must be 1 to " + std::to_string(Topology::kRanksMax));
  }
  if (per_group != 0 && (per_group < 2 || ranks % per_group != 0 || ranks == per_group)) {
    invalid("groups of " + std::to_string(per_group) + " on a node of " + std::to_string(ranks) +
            " ranks; there must be at least two groups of at least two ranks each, as in node:8*4");
  }
  Topology topology;
  topology.ranks_ = ranks;
  topology.per_node_ = ranks;
  topology.per_group_ = per_group;
  topology.extents_ = {ranks, 1, 1};
  return topology;
}

Topology Topology::node_of(std::span<const int> groups) {
  const int ranks = static_cast<int>(groups.size());
  const auto next = std::ranges::find_if(groups, [&](int group) { return group != groups.front(); });
  const auto per_group = next - groups.begin();
  if (per_group < 2 || next == groups.end() || ranks % per_group != 0) return node(ranks);
  std::vector<int> seen;
  for (std::size_t rank = 0; rank < groups.size(); ++rank) {
    const bool begins = rank % static_cast<std::size_t>(per_group) == 0;
    if (begins == (!seen.empty() && groups[rank] == seen.back()) || groups[rank] < 0) return node(ranks);
    if (begins) seen.push_back(groups[rank]);
  }
  std::ranges::sort(seen);
  return std::ranges::adjacent_find(seen) == seen.end() ? node(ranks, static_cast<int>(per_group)) : node(ranks);
}

Topology Topology::torus(Coordinates extents, std::array<bool, 3> wraps, int dimensions, int per_node) {
  if (dimensions < 1 || dimensions > 3) {
    invalid("a torus of " + std::to_string(dimensions) + " dimensions; there must be 1 to 3");
  }
  if (per_node < 1 || per_node > Topology::kRanksMax) {
    invalid(std::to_string(per_node) + " ranks on each node; there must be 1 to " +
            std::to_string(Topology::kRanksMax));
  }
  Topology topology;
  topology.kind_ = Kind::torus;
  topology.dimensions_ = dimensions;
  topology.per_node_ = per_node;
  long long ranks = per_node;
  for (std::size_t d = 0; d < 3; ++d) {
    const bool counts = static_cast<int>(d) < dimensions;
    if (extents[d] < 1 || (!counts && extents[d] != 1)) {
      invalid("extent " + std::to_string(extents[d]) + " of dimension " + std::to_string(d) +
              "; it must be at least 1" + (counts ? "" : ", and 1 beyond the last dimension"));
    }
    ranks *= extents[d];
    if (ranks > Topology::kRanksMax) {
      invalid("the extents" + std::string(per_node > 1 ? " and the ranks of a node" : "") + " multiply to more than " +
              std::to_string(Topology::kRanksMax) + " ranks");
    }
    topology.extents_[d] = extents[d];
    topology.wraps_[d] = counts && wraps[d];
  }
  topology.ranks_ = static_cast<int>(ranks);
  return topology;
}

Topology Topology::of_tree(TreeTopology tree, std::string path) {
  Topology topology;
  topology.kind_ = Kind::tree;
  topology.ranks_ = tree.ranks();
  topology.extents_ = {topology.ranks_, 1, 1};
  topology.tree_ = std::make_shared<const TreeTopology>(std::move(tree));
  topology.path_ = std::move(path);
  return topology;
}

bool Topology::operator==(const Topology& other) const noexcept {
  const bool same_tree = tree_ == other.tree_ || (tree_ != nullptr && other.tree_ != nullptr && *tree_ == *other.tree_);
  return same_tree && kind_ == other.kind_ && ranks_ == other.ranks_ && per_node_ == other.per_node_ &&
         per_group_ == other.per_group_ && dimensions_ == other.dimensions_ && extents_ == other.extents_ &&
         wraps_ == other.wraps_ && selects_ties_ == other.selects_ties_ && positions_ == other.positions_;
}

Topology Topology::of_nodes() const {
  if (kind_ != Kind::torus) return torus({1, 1, 1});
  Topology nodes = torus(extents_, wraps_, dimensions_);
  nodes.selects_ties_ = selects_ties_;
  return nodes;
}

Topology Topology::with_ties() const {
  if (!has_ties()) {
    invalid("topology '" + text() + ",ties': no message can go either way, since no dimension of even extent " +
            "wraps; write " + text());
  }
  Topology result = *this;
  result.selects_ties_ = true;
  return result;
}

bool Topology::has_ties() const noexcept {
  bool any = false;
  for (std::size_t d = 0; d < 3; ++d) any |= wraps_[d] && extents_[d] % 2 == 0;
  return any;
}

Coordinates Topology::coordinates(int rank) const noexcept {
  const int node = kind_ == Kind::node ? rank : node_of(rank);
  return {node % extents_[0], node / extents_[0] % extents_[1], node / (extents_[0] * extents_[1])};
}

int Topology::rank(const Coordinates& at) const noexcept {
  const int node = at[0] + extents_[0] * (at[1] + extents_[1] * at[2]);
  return kind_ == Kind::node ? node : rank_at(node, 0);
}

int Topology::neighbour(int rank, int dimension, int direction) const noexcept {
  const auto d = static_cast<std::size_t>(dimension);
  if (kind_ != Kind::torus || extents_[d] == 1) return -1;
  Coordinates at = coordinates(rank);
  const int to = at[d] + direction;
  if (!wraps_[d] && (to < 0 || to >= extents_[d])) return -1;
  at[d] = (to + extents_[d]) % extents_[d];
  return rank_at(at[0] + extents_[0] * (at[1] + extents_[1] * at[2]), place_of(rank));
}

namespace {

/// One axis of a part: its dimension and direction in the whole, and its extent.
struct Axis {
  int dimension = 0;
  int direction = 1;
  int extent = 1;
};

/// The axis along which two nodes are neighbours; dimension -1 if they are not. In a torus dimension of extent 2 two
/// nodes are neighbours in both directions; the result is +.
Axis step_between(const Topology& whole, int from, int to) {
  for (int dimension = 0; dimension < 3; ++dimension) {
    for (const int direction : {1, -1}) {
      if (whole.neighbour(from, dimension, direction) == to) return {dimension, direction, 1};
    }
  }
  return {-1, 0, 0};
}

/// The node with this index in the box that starts at `first` and has these axes; -1 if the box leaves the whole.
int node_of_box(const Topology& whole, int first, std::span<const Axis> axes, int index) {
  int node = first;
  for (const Axis& axis : axes) {
    for (int step = index % axis.extent; step > 0 && node >= 0; --step) {
      node = whole.neighbour(node, axis.dimension, axis.direction);
    }
    index /= axis.extent;
    if (node < 0) return -1;
  }
  return node;
}

/// The axes of the box that `nodes` form in their order; empty if they form none. Each axis is as long as possible.
std::vector<Axis> box_axes(const Topology& whole, std::span<const int> nodes) {
  const int count = static_cast<int>(nodes.size());
  std::vector<Axis> axes;
  int covered = 1;
  while (covered < count) {
    Axis axis = step_between(whole, nodes[0], nodes[static_cast<std::size_t>(covered)]);
    const bool is_new =
        std::none_of(axes.begin(), axes.end(), [&](const Axis& other) { return other.dimension == axis.dimension; });
    if (axis.dimension < 0 || !is_new) return {};
    int node = nodes[0];
    const int most = whole.extents()[static_cast<std::size_t>(axis.dimension)];
    while (axis.extent < most && axis.extent * covered < count) {
      node = whole.neighbour(node, axis.dimension, axis.direction);
      if (node != nodes[static_cast<std::size_t>(axis.extent * covered)]) break;
      ++axis.extent;
    }
    covered *= axis.extent;
    axes.push_back(axis);
  }
  if (covered != count) return {};
  for (int index = 0; index < count; ++index) {
    if (node_of_box(whole, nodes[0], axes, index) != nodes[static_cast<std::size_t>(index)]) return {};
  }
  return axes;
}

}  // namespace

Topology Topology::with_positions(std::vector<int> positions) const {
  std::vector<int> ranks_at(positions.size(), -1);
  bool is_whole = kind_ == Kind::torus && positions.size() == static_cast<std::size_t>(ranks_);
  for (std::size_t rank = 0; is_whole && rank < positions.size(); ++rank) {
    is_whole = positions[rank] >= 0 && positions[rank] < ranks_;
    if (is_whole) ranks_at[static_cast<std::size_t>(positions[rank])] = static_cast<int>(rank);
  }
  if (!is_whole || std::ranges::find(ranks_at, -1) != ranks_at.end()) {
    throw Error(Status::internal, "the positions do not contain every place of " + text() + " once");
  }
  Topology mapped = *this;
  const bool changes = !std::ranges::is_sorted(positions);
  mapped.positions_ = changes ? std::move(positions) : std::vector<int>();
  mapped.ranks_at_ = changes ? std::move(ranks_at) : std::vector<int>();
  return mapped;
}

std::optional<Topology> Topology::part(std::span<const int> ranks) const {
  if (ranks.empty()) return std::nullopt;
  if (kind_ == Kind::node) return part_of_groups(ranks);
  if (kind_ == Kind::tree) return of_tree(tree_->part(ranks), path_);
  const std::optional<Topology> in_order = part_in_order(ranks);
  return in_order || !is_mapped() ? in_order : part_in_any_order(ranks);
}

std::optional<Topology> Topology::part_of_groups(std::span<const int> ranks) const {
  if (per_group_ == 0) return std::nullopt;
  std::vector<int> groups;
  for (const int rank : ranks) groups.push_back(rank / per_group_);
  const Topology part = node_of(groups);
  return part.per_group() == 0 ? std::nullopt : std::optional(part);
}

/// Tries the members in the order of their places. If these form a part, a rank map of the part restores their order.
std::optional<Topology> Topology::part_in_any_order(std::span<const int> ranks) const {
  std::vector<int> order(ranks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int member) { return position_of(ranks[static_cast<std::size_t>(member)]); });
  std::vector<int> sorted;
  std::vector<int> positions(ranks.size());
  for (std::size_t position = 0; position < order.size(); ++position) {
    const auto member = static_cast<std::size_t>(order[position]);
    sorted.push_back(ranks[member]);
    positions[member] = static_cast<int>(position);
  }
  const std::optional<Topology> shape = part_in_order(sorted);
  if (!shape) return std::nullopt;
  return shape->with_positions(std::move(positions));
}

std::optional<Topology> Topology::part_in_order(std::span<const int> ranks) const {
  const auto next_node =
      std::find_if(ranks.begin(), ranks.end(), [&](int rank) { return node_of(rank) != node_of(ranks[0]); });
  const auto per_node = static_cast<std::size_t>(next_node - ranks.begin());
  if (next_node == ranks.end() || ranks.size() % per_node != 0) return std::nullopt;
  std::vector<int> nodes;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int node = node_of(ranks[i]);
    if (i % per_node == 0) nodes.push_back(node);
    if (node != nodes.back()) return std::nullopt;
  }
  const std::vector<Axis> axes = box_axes(of_nodes(), nodes);
  if (axes.empty()) return std::nullopt;
  Coordinates extents = {1, 1, 1};
  std::array<bool, 3> wraps = {false, false, false};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto dimension = static_cast<std::size_t>(axes[i].dimension);
    extents[i] = axes[i].extent;
    wraps[i] = wraps_[dimension] && axes[i].extent == extents_[dimension];
  }
  Topology result = torus(extents, wraps, static_cast<int>(axes.size()), static_cast<int>(per_node));
  result.selects_ties_ = selects_ties_ && result.has_ties();
  return result;
}

}  // namespace torii
