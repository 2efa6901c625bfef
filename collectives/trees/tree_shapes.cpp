// SPDX-License-Identifier: Apache-2.0
// Assigns cables to trees, for every torus and mesh. A tree is a set of cables here; the root is only its centre.
//
//   all three dimensions wrap        3 trees of Trinaryx3, height X + Y + Z - 2
//   two of two wrap                  2 trees, the same in two dimensions
//   two of three wrap                2 trees: two trees in every layer; one cable per tree joins neighbouring layers
//   one or none of three wraps       2 trees: a comb, and shortest paths over the other cables; 1 tree if none wraps
//   and
//                                    an extent is 2
//   one or none of two wraps         1 tree; 2 if the dimension that wraps has extent 2, hence two cables
//   one dimension                    1 tree, in both directions from the root
//
// N ranks with C cables have at most C / (N-1) disjoint trees. This file finds that many, with two exceptions. On
// meshes of 2 x Y x Z two trees may exist. For two ranks with two cables, one tree needs half as many messages.
#include <algorithm>
#include <array>
#include <optional>

#include "collectives/trees/trees.hpp"

namespace torii {
namespace {

using Cables = std::vector<CableId>;

/// Dimensions with more than one layer.
std::vector<int> present_dimensions(const Topology& shape) {
  std::vector<int> dimensions;
  for (int d = 0; d < 3; ++d) {
    if (shape.extents()[static_cast<std::size_t>(d)] > 1) dimensions.push_back(d);
  }
  return dimensions;
}

/// The cable by which tree number `tree` of Trinaryx3 reaches `rank`, for a root at `centre`; -1 at the centre. All of
/// `dimensions` wrap. Let p, q, s be the dimensions, starting at the tree's own. A chain along p starts at the root,
/// chains along q start from the ranks of that chain, and chains along s from those along q. Ranks with the root's
/// coordinate in p are reached along p, from the last rank of the ring.
CableId trinaryx3_cable(const Topology& shape, const std::vector<int>& dimensions, std::size_t tree,
                        const Coordinates& centre, int rank) {
  const Coordinates at = shape.coordinates(rank);
  const auto axis = [&](std::size_t turn) { return dimensions[(tree + turn) % dimensions.size()]; };
  const auto is_away = [&](int d) { return at[static_cast<std::size_t>(d)] != centre[static_cast<std::size_t>(d)]; };
  int along = axis(0);
  if (is_away(along)) {
    // The last chain that leads here: the latest axis in which the rank is away from the centre.
    for (std::size_t turn = dimensions.size() - 1; turn > 0; --turn) {
      if (is_away(axis(turn))) {
        along = axis(turn);
        break;
      }
    }
  } else if (std::none_of(dimensions.begin(), dimensions.end(), is_away)) {
    return -1;
  }
  return cable_id(shape.neighbour(rank, along, -1), along);
}

/// As many trees as `dimensions`, which all wrap, in every layer of the other dimensions.
std::vector<Cables> trinaryx3(const Topology& shape, const std::vector<int>& dimensions, int root) {
  const Coordinates centre = shape.coordinates(root);
  std::vector<Cables> trees(dimensions.size());
  for (std::size_t tree = 0; tree < trees.size(); ++tree) {
    for (int rank = 0; rank < shape.ranks(); ++rank) {
      const CableId cable = trinaryx3_cable(shape, dimensions, tree, centre, rank);
      if (cable >= 0) trees[tree].push_back(cable);
    }
  }
  return trees;
}

/// Adds the cables along `dimension` that join all layers at the coordinates of `rank`, without the wrapping cable.
void join_layers(const Topology& shape, int rank, int dimension, Cables& cables) {
  Coordinates at = shape.coordinates(rank);
  for (int layer = 0; layer + 1 < shape.extents()[static_cast<std::size_t>(dimension)]; ++layer) {
    at[static_cast<std::size_t>(dimension)] = layer;
    cables.push_back(cable_id(shape.rank(at), dimension));
  }
}

/// The two two-dimensional trees in every layer. Cables at the root's coordinates join the layers of the first tree.
/// Those of the second tree are one step away along that tree's first chain, so that it becomes hardly higher.
std::vector<Cables> layered_pair(const Topology& shape, const std::vector<int>& wrapping, int ending, int root) {
  std::vector<Cables> trees = trinaryx3(shape, wrapping, root);
  join_layers(shape, root, ending, trees[0]);
  join_layers(shape, shape.neighbour(root, wrapping[1], 1), ending, trees[1]);
  return trees;
}

/// The tree of shortest paths from `root` over all cables except `taken`; nothing if these do not reach all ranks.
std::optional<Cables> shortest_ways(const Topology& shape, int root, const Cables& taken) {
  std::vector<bool> closed(3 * static_cast<std::size_t>(shape.ranks()), false);
  for (const CableId cable : taken) closed[static_cast<std::size_t>(cable)] = true;
  std::vector<bool> seen(static_cast<std::size_t>(shape.ranks()), false);
  std::vector<int> reached = {root};
  seen[static_cast<std::size_t>(root)] = true;
  Cables cables;
  for (std::size_t head = 0; head < reached.size(); ++head) {
    const int rank = reached[head];
    for (int d = 0; d < 3; ++d) {
      for (const int direction : {1, -1}) {
        const int to = shape.neighbour(rank, d, direction);
        if (to < 0 || seen[static_cast<std::size_t>(to)]) continue;
        const CableId cable = cable_id(direction > 0 ? rank : to, d);
        if (closed[static_cast<std::size_t>(cable)]) continue;
        seen[static_cast<std::size_t>(to)] = true;
        reached.push_back(to);
        cables.push_back(cable);
      }
    }
  }
  if (static_cast<int>(reached.size()) != shape.ranks()) return std::nullopt;
  return cables;
}

/// A spanning tree that leaves many cables unused. Each layer along `axes[2]` is a comb: even layers have teeth along
/// `axes[0]`, odd layers along `axes[1]`. The back of a comb crosses its teeth; `backs` holds the two distances of
/// backs from the root, which alternate. Cables at the root's coordinates join the layers. Every layer leaves the
/// cables across its teeth unused, except the back. So the unused cables are connected if the layers of each kind have
/// both backs.
Cables comb(const Topology& shape, int centre_rank, const std::array<int, 3>& axes, const std::array<int, 2>& backs) {
  const Coordinates centre = shape.coordinates(centre_rank);
  Cables cables;
  for (int rank = 0; rank < shape.ranks(); ++rank) {
    const Coordinates at = shape.coordinates(rank);
    const int layer = at[static_cast<std::size_t>(axes[2])];
    const int teeth = axes[static_cast<std::size_t>(layer % 2)];
    const int across = axes[static_cast<std::size_t>(1 - layer % 2)];
    const auto is_last = [&](int d) {
      return at[static_cast<std::size_t>(d)] + 1 == shape.extents()[static_cast<std::size_t>(d)];
    };
    const auto t = static_cast<std::size_t>(teeth);
    const int back = (centre[t] + backs[static_cast<std::size_t>(layer / 2 % 2)]) % shape.extents()[t];
    if (!is_last(teeth)) cables.push_back(cable_id(rank, teeth));
    if (at[t] == back && !is_last(across)) cables.push_back(cable_id(rank, across));
  }
  join_layers(shape, centre_rank, axes[2], cables);
  return cables;
}

/// A comb and shortest paths over the cables that it leaves, if some comb leaves enough; one tree otherwise. Prefers a
/// comb that is centred at the root.
std::vector<Cables> comb_and_rest(const Topology& shape, int root) {
  constexpr std::array<std::array<int, 3>, 6> kAxes = {
      {{0, 1, 2}, {1, 0, 2}, {2, 0, 1}, {0, 2, 1}, {1, 2, 0}, {2, 1, 0}}};
  constexpr std::array<std::array<int, 2>, 5> kBacks = {{{1, 2}, {1, 1}, {0, 0}, {0, 1}, {1, 0}}};
  for (const int centre : {root, 0}) {
    for (const auto& axes : kAxes) {
      for (const auto& backs : kBacks) {
        Cables first = comb(shape, centre, axes, backs);
        std::optional<Cables> rest = shortest_ways(shape, root, first);
        if (rest) return {std::move(first), std::move(*rest)};
      }
    }
  }
  return {*shortest_ways(shape, root, {})};
}

}  // namespace

std::vector<std::vector<CableId>> disjoint_trees(const Topology& shape, int root) {
  const std::vector<int> present = present_dimensions(shape);
  std::vector<int> wrapping;
  int ending = -1;
  for (const int d : present) {
    if (shape.wraps(d)) {
      wrapping.push_back(d);
    } else {
      ending = d;
    }
  }
  if (present.size() < 2) return {*shortest_ways(shape, root, {})};
  if (wrapping.size() == present.size()) return trinaryx3(shape, wrapping, root);
  if (wrapping.size() == 2) return layered_pair(shape, wrapping, ending, root);
  return comb_and_rest(shape, root);
}

}  // namespace torii
