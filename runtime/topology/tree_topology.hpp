// SPDX-License-Identifier: Apache-2.0
// A tree of links with bandwidths and latencies: the topology of a heterogeneous cluster, read from a text file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace torii {

/// A node of the tree. Communicating nodes have one rank each; relays (switches) only forward.
struct TreeNode {
  std::string name;
  int rank = -1;  ///< -1: a relay
  bool operator==(const TreeNode&) const = default;
};

/// A cable between nodes `ends[0]` and `ends[1]`. Direction 0 leads from ends[0] to ends[1], direction 1 back. The two
/// directions of a half-duplex link share its bandwidth.
struct TreeLink {
  std::array<int, 2> ends = {0, 0};
  std::array<std::int64_t, 2> bandwidth = {1, 1};   ///< bytes per second, by direction, >= 1
  std::array<std::int64_t, 2> latency_ns = {0, 0};  ///< by direction, >= 0
  bool half_duplex = false;
  bool operator==(const TreeLink&) const = default;
};

/// One link of a path, and the direction in which the path crosses it.
struct TreeHop {
  int link = 0;
  int direction = 0;
  bool operator==(const TreeHop&) const = default;
};

/// A tree topology file contains one statement per line; # starts a comment.
///
///   node NAME comm|relay
///   link A B BANDWIDTH_AB BANDWIDTH_BA LATENCY_AB LATENCY_BA full|half
///   rank N NAME     places a rank; without such lines ranks are placed on the comm nodes in the order of their lines
///   root NAME       the root of a broadcast unless a call names another; rank 0 without this line
///
/// Bandwidths are numbers with B/s, kB/s, MB/s, GB/s, bit/s, kbit/s, Mbit/s or Gbit/s (all decimal), latencies with ns,
/// us, ms or s. Names must be declared before they are used. The links must join all nodes without a cycle.
class TreeTopology {
 public:
  static constexpr int kNodesMax = 1 << 16;

  /// Throws Error{invalid_argument} that names `origin`, the line, the word and what would be right.
  static TreeTopology parse(std::string_view text, const std::string& origin);
  /// Reads and parses the file at `path`. Throws Error{invalid_argument}.
  static TreeTopology load(const std::string& path);
  /// The content of the file at `path`, at most 64 MiB. Throws Error{invalid_argument}.
  static std::string read(const std::string& path);
  /// Equal full-duplex links without latency join all ranks to one relay.
  static TreeTopology star(int ranks);

  const std::vector<TreeNode>& nodes() const noexcept { return nodes_; }
  const std::vector<TreeLink>& links() const noexcept { return links_; }
  int ranks() const noexcept { return static_cast<int>(node_of_rank_.size()); }
  int node_of(int rank) const noexcept { return node_of_rank_[static_cast<std::size_t>(rank)]; }
  /// The rank that the file names as root; 0 if it names none.
  int root() const noexcept { return root_; }
  /// The links at a node, each in the direction that leaves the node, in the order of the file.
  std::span<const TreeHop> hops(int node) const noexcept;
  /// The node to which a hop leads.
  int reaches(TreeHop hop) const noexcept {
    return links_[static_cast<std::size_t>(hop.link)].ends[static_cast<std::size_t>(1 - hop.direction)];
  }
  /// The links crossed from node `from` to node `to`, in order.
  std::vector<TreeHop> way(int from, int to) const;
  /// The ranks in depth-first order from `rank`: a chain through them crosses every directed link at most once. At each
  /// node the links with the fastest direction back come first, ties in the order of the file.
  std::vector<int> depth_first(int rank) const;
  /// The tree of a team of `ranks`, in this order. The other comm nodes become relays; relays that lead to none of
  /// `ranks` are left out.
  TreeTopology part(std::span<const int> ranks) const;
  /// The tree with the two directions of every link swapped: a broadcast there, run backwards, is a reduce here.
  TreeTopology reversed() const;
  /// The text that parse() reads back to an equal tree.
  std::string text() const;

  bool operator==(const TreeTopology&) const = default;

 private:
  friend class TreeParser;
  /// Lists the links of each node and the nodes of ranks.
  void index();

  std::vector<TreeNode> nodes_;
  std::vector<TreeLink> links_;
  int root_ = 0;
  std::vector<int> node_of_rank_;
  std::vector<int> first_hop_;  ///< by node, and one more: index into hops_
  std::vector<TreeHop> hops_;
};

}  // namespace torii
