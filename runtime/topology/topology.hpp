// SPDX-License-Identifier: Apache-2.0
// What the ranks stand on: a torus or mesh of nodes in up to three dimensions, a tree of links, or one shared-memory
// node. Pure arithmetic, but for the file that a tree is read from.
#pragma once

#include <array>
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

/// Which way round a message goes in each dimension in which both are equally long: +1, -1, or 0 where nothing is said.
using Ties = std::array<std::int8_t, 3>;

/// Node = x + X (y + Y z), and its ranks are node * per_node() and those that follow, unless a rank map puts them
/// elsewhere; mostly there is one. A dimension either wraps (torus) or ends (mesh); an extent of 1 has no links. In a
/// torus a dimension of extent 2 has two cables between the two layers, in a mesh one. A tree has one rank on each comm
/// node and neither dimensions nor neighbours: what looks at extents sees a row of ranks, as on one node.
class Topology {
 public:
  enum class Kind { node, torus, tree };  // a mesh is a torus none of whose dimensions wraps

  /// One shared-memory node of `ranks` ranks (>= 1). Throws invalid_argument.
  static Topology node(int ranks);
  /// A torus of nodes with `per_node` ranks each; `wraps[d]` false makes dimension d a mesh. Extents and per_node >= 1,
  /// their product at most 2^20. Throws invalid_argument.
  static Topology torus(Coordinates extents, std::array<bool, 3> wraps = {true, true, true}, int dimensions = 3,
                        int per_node = 1);
  /// `path` is what text() says after `tree:`.
  static Topology of_tree(TreeTopology tree, std::string path);
  /// `torus:4x4x4`, `torus:4x4x2m`, `mesh:8x8`, `torus:3x3*2` (two ranks on each node), `torus:4x4,ties` (senders
  /// choose the way round: selects_ties()), `tree:FILE`, `node`. `ranks` is the size the text must fit: a different
  /// product, or number of comm nodes, is an error that names both. Throws Error{invalid_argument} with the wrong word.
  static Topology parse(std::string_view text, int ranks);
  /// The same for `tree:FILE` whose content has been read already.
  static Topology parse_tree(std::string_view text, const std::string& content, int ranks);

  Kind kind() const noexcept { return kind_; }
  int ranks() const noexcept { return ranks_; }
  /// Ranks that share a node: all of them where the kind is `node`.
  int per_node() const noexcept { return per_node_; }
  int nodes() const noexcept { return ranks_ / per_node_; }
  /// The links of a tree; nullptr for the other kinds.
  const TreeTopology* tree() const noexcept { return tree_.get(); }
  int node_of(int rank) const noexcept { return position_of(rank) / per_node_; }
  /// Which of its node's ranks it is, from 0.
  int place_of(int rank) const noexcept { return position_of(rank) % per_node_; }
  int rank_at(int node, int place) const noexcept {
    const int position = node * per_node_ + place;
    return ranks_at_.empty() ? position : ranks_at_[static_cast<std::size_t>(position)];
  }
  /// The same torus with rank r where without a map rank positions[r] stands. `positions` holds each of 0 .. ranks-1
  /// once. Throws internal for anything else, and for what is no torus.
  Topology with_positions(std::vector<int> positions) const;
  /// Some rank stands elsewhere than without a map.
  bool is_mapped() const noexcept { return !positions_.empty(); }
  /// The torus on which the nodes stand, with one rank on each; of a single node, and of a tree, one without links.
  Topology of_nodes() const;
  int dimensions() const noexcept { return dimensions_; }
  const Coordinates& extents() const noexcept { return extents_; }
  bool wraps(int dimension) const noexcept { return wraps_[static_cast<std::size_t>(dimension)]; }
  /// Whether the network lets a sender choose the way of a message that goes half-way round a dimension of even extent.
  /// Then plans may name it (Ties in runtime/plan/plan.hpp); otherwise the network takes one of the two by a rule of
  /// its own.
  bool selects_ties() const noexcept { return selects_ties_; }
  /// The same torus, with that choice. Throws invalid_argument for what is no torus with a dimension that wraps and has
  /// an even extent: there are no ties.
  Topology with_ties() const;
  /// Of the rank's node.
  Coordinates coordinates(int rank) const noexcept;
  /// The first rank of the node there.
  int rank(const Coordinates& at) const noexcept;
  /// The rank of the same place on the node one step along `dimension` in `direction` (+1 or -1), or -1 where a mesh
  /// ends or the extent is 1.
  int neighbour(int rank, int dimension, int direction) const noexcept;
  /// What `ranks`, in this order, stand on by themselves: a row, a plane or a box, along dimensions in any order and
  /// direction, with as many ranks of each node. A dimension of which they have all wraps as it does here, otherwise it
  /// is a mesh's. Under a rank map their order may also be any: then the part has a map of its own. None where they
  /// form nothing of the kind or share one node. Of a tree, the ways between them.
  std::optional<Topology> part(std::span<const int> ranks) const;
  /// The text that parse() reads back, without the map; of a part of a tree, the name of the file of the whole.
  std::string text() const;
  /// The map as with_rank_map() reads it, "list:2,0,1"; empty without one.
  std::string map_text() const;

  bool operator==(const Topology& other) const noexcept;

 private:
  int position_of(int rank) const noexcept {
    return positions_.empty() ? rank : positions_[static_cast<std::size_t>(rank)];
  }
  bool has_ties() const noexcept;
  std::optional<Topology> part_in_order(std::span<const int> ranks) const;
  std::optional<Topology> part_in_any_order(std::span<const int> ranks) const;

  Kind kind_ = Kind::node;
  int ranks_ = 1;
  int per_node_ = 1;
  int dimensions_ = 1;
  Coordinates extents_ = {1, 1, 1};
  std::array<bool, 3> wraps_ = {false, false, false};
  bool selects_ties_ = false;
  std::shared_ptr<const TreeTopology> tree_;  ///< shared by all requests on it
  std::string path_;
  std::vector<int> positions_;  ///< by rank: node * per_node + place; empty: each rank's own number
  std::vector<int> ranks_at_;   ///< by position
};

/// The ranks that a topology's text asks for: the product of its extents and of the ranks of a node. 0 for text without
/// such a product (`node`, `tree:FILE`, an extent of 0), which Topology::parse() reads or refuses.
int ranks_named(std::string_view text) noexcept;

}  // namespace torii
