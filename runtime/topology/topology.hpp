// SPDX-License-Identifier: Apache-2.0
// The network under the ranks: a torus or mesh of nodes in up to three dimensions, a tree of links, or one
// shared-memory node. Pure arithmetic, except that a tree is read from a file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/topology/tree_topology.hpp"

namespace torii {

using Coordinates = std::array<int, 3>;

/// By dimension: the direction of a message for which both directions are equally long. +1, -1, or 0 if not chosen.
using Ties = std::array<std::int8_t, 3>;

/// Node = x + X (y + Y z). Its ranks are node * per_node() and the following ones, unless a rank map moves them; mostly
/// a node has one rank. A dimension wraps (torus) or ends (mesh); an extent of 1 has no links. In a torus, two cables
/// join the two layers of a dimension of extent 2; in a mesh, one. A tree has one rank on each comm node, and neither
/// dimensions nor neighbours. Its extents, like those of one node, describe a row of ranks.
class Topology {
 public:
  enum class Kind { node, torus, tree };  // a mesh is a torus none of whose dimensions wraps
  static constexpr int kRanksMax = 1 << 20;

  /// One shared-memory node of `ranks` ranks (>= 1), in groups of `per_group` neighbouring ranks that share a cache;
  /// 0: nothing is known of caches. Throws invalid_argument.
  static Topology node(int ranks, int per_group = 0);
  /// The node of ranks of which rank i is in group groups[i], or in none (-1). Its groups are known if there are at
  /// least two, each with the same number of neighbouring ranks, at least two.
  static Topology node_of(std::span<const int> groups);
  /// A torus of nodes with `per_node` ranks each; dimension d is a mesh if `wraps[d]` is false. Extents and per_node
  /// are at least 1, their product is at most 2^20. Throws invalid_argument.
  static Topology torus(Coordinates extents, std::array<bool, 3> wraps = {true, true, true}, int dimensions = 3,
                        int per_node = 1);
  /// text() prints `path` after `tree:`.
  static Topology of_tree(TreeTopology tree, std::string path);
  /// Reads `torus:4x4x4`, `torus:4x4x2m`, `mesh:8x8`, `torus:3x3*2` (two ranks on each node), `torus:4x4,ties` (senders
  /// choose the direction of ties: selects_ties()), `tree:FILE`, `node`, `node:8*4` (8 groups of 4 ranks). The text
  /// must describe `ranks` ranks. Throws Error{invalid_argument} that names the wrong word, or both numbers of ranks.
  static Topology parse(std::string_view text, int ranks);
  /// parse() of `tree:FILE` if the content of the file has been read already.
  static Topology parse_tree(std::string_view text, const std::string& content, int ranks);

  Kind kind() const noexcept { return kind_; }
  int ranks() const noexcept { return ranks_; }
  /// Ranks that share a node: all of them if the kind is `node`.
  int per_node() const noexcept { return per_node_; }
  int nodes() const noexcept { return ranks_ / per_node_; }
  /// Ranks of one node that share a cache: rank r is in group r / per_group(). 0: nothing is known of caches.
  int per_group() const noexcept { return per_group_; }
  /// The links of a tree; nullptr for the other kinds.
  const TreeTopology* tree() const noexcept { return tree_.get(); }
  int node_of(int rank) const noexcept { return position_of(rank) / per_node_; }
  /// The index of the rank among the ranks of its node.
  int place_of(int rank) const noexcept { return position_of(rank) % per_node_; }
  int rank_at(int node, int place) const noexcept {
    const int position = node * per_node_ + place;
    return ranks_at_.empty() ? position : ranks_at_[static_cast<std::size_t>(position)];
  }
  /// The same torus with a rank map: rank r takes the place that rank positions[r] has without a map. `positions`
  /// contains each of 0 .. ranks-1 once. Throws internal otherwise, and for other kinds of topologies.
  Topology with_positions(std::vector<int> positions) const;
  /// Whether a rank map moves any rank.
  bool is_mapped() const noexcept { return !positions_.empty(); }
  /// The torus of the nodes with one rank on each. For a single node or a tree: a torus of one rank.
  Topology of_nodes() const;
  int dimensions() const noexcept { return dimensions_; }
  const Coordinates& extents() const noexcept { return extents_; }
  bool wraps(int dimension) const noexcept { return wraps_[static_cast<std::size_t>(dimension)]; }
  /// Whether a sender may choose the direction of a message that travels half-way round a dimension of even extent. If
  /// so, plans may contain the choice (Ties); otherwise the network chooses.
  bool selects_ties() const noexcept { return selects_ties_; }
  /// The same torus with selects_ties(). Throws invalid_argument if no dimension of even extent wraps.
  Topology with_ties() const;
  /// The coordinates of the rank's node.
  Coordinates coordinates(int rank) const noexcept;
  /// The first rank of the node at these coordinates.
  int rank(const Coordinates& at) const noexcept;
  /// The rank at the same place on the node one step along `dimension` in `direction` (+1 or -1). -1 if a mesh ends
  /// there or the extent is 1.
  int neighbour(int rank, int dimension, int direction) const noexcept;
  /// The topology of a team of `ranks`, in this order. On a torus the ranks must form a row, a plane or a box, along
  /// dimensions in any order and direction, with equally many ranks of each node. A dimension wraps in the part if it
  /// wraps here and the ranks span it; otherwise it is a mesh dimension. Under a rank map any order is allowed: the
  /// part then has a map too. On a tree the part consists of the paths between the ranks, and on a node of groups of
  /// those that they belong to. Returns nothing if the ranks form no such part, or share one node or group.
  std::optional<Topology> part(std::span<const int> ranks) const;
  /// The text that parse() reads back, without the map. For a part of a tree: the file name of the whole tree.
  std::string text() const;
  /// The map in the form that with_rank_map() reads, "list:2,0,1"; empty without a map.
  std::string map_text() const;

  bool operator==(const Topology& other) const noexcept;

 private:
  int position_of(int rank) const noexcept {
    return positions_.empty() ? rank : positions_[static_cast<std::size_t>(rank)];
  }
  bool has_ties() const noexcept;
  std::optional<Topology> part_of_groups(std::span<const int> ranks) const;
  std::optional<Topology> part_in_order(std::span<const int> ranks) const;
  std::optional<Topology> part_in_any_order(std::span<const int> ranks) const;

  Kind kind_ = Kind::node;
  int ranks_ = 1;
  int per_node_ = 1;
  int per_group_ = 0;
  int dimensions_ = 1;
  Coordinates extents_ = {1, 1, 1};
  std::array<bool, 3> wraps_ = {false, false, false};
  bool selects_ties_ = false;
  std::shared_ptr<const TreeTopology> tree_;  ///< shared by all requests on it
  std::string path_;
  std::vector<int> positions_;  ///< by rank: node * per_node + place; empty without a map
  std::vector<int> ranks_at_;   ///< by position
};

/// The number of ranks that a topology's text describes: the product of its extents and the ranks per node. 0 for a
/// text without such a product (`node`, `tree:FILE`, an extent of 0), which Topology::parse() reads or refuses.
int ranks_named(std::string_view text) noexcept;

}  // namespace torii
