// SPDX-License-Identifier: Apache-2.0
// Paths, orders and parts of a tree of links. tree_parser.cpp reads its text.
#include "runtime/topology/tree_topology.hpp"

#include <algorithm>

#include "runtime/base/status.hpp"

namespace torii {
namespace {

std::size_t at(int value) { return static_cast<std::size_t>(value); }

}  // namespace

TreeTopology TreeTopology::star(int ranks) {
  TreeTopology tree;
  tree.nodes_.push_back({"hub", -1});
  for (int rank = 0; rank < ranks; ++rank) {
    tree.nodes_.push_back({"rank" + std::to_string(rank), rank});
    tree.links_.push_back({{rank + 1, 0}, {1'000'000'000, 1'000'000'000}, {0, 0}, false});
  }
  tree.index();
  return tree;
}

void TreeTopology::index() {
  const auto ranks = std::count_if(nodes_.begin(), nodes_.end(), [](const TreeNode& node) { return node.rank >= 0; });
  node_of_rank_.assign(static_cast<std::size_t>(ranks), -1);
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].rank >= 0) node_of_rank_[at(nodes_[node].rank)] = static_cast<int>(node);
  }
  first_hop_.assign(nodes_.size() + 1, 0);
  for (const TreeLink& link : links_) {
    for (const int end : link.ends) ++first_hop_[at(end) + 1];
  }
  for (std::size_t node = 0; node < nodes_.size(); ++node) first_hop_[node + 1] += first_hop_[node];
  hops_.resize(2 * links_.size());
  std::vector<int> next(first_hop_.begin(), first_hop_.end() - 1);
  for (std::size_t link = 0; link < links_.size(); ++link) {
    for (int direction = 0; direction < 2; ++direction) {
      const int from = links_[link].ends[at(direction)];
      hops_[at(next[at(from)]++)] = {static_cast<int>(link), direction};
    }
  }
}

std::span<const TreeHop> TreeTopology::hops(int node) const noexcept {
  const std::size_t first = at(first_hop_[at(node)]);
  return std::span(hops_).subspan(first, at(first_hop_[at(node) + 1]) - first);
}

std::vector<TreeHop> TreeTopology::way(int from, int to) const {
  // The search starts at the goal, so that each node reached knows its next hop towards the goal.
  std::vector<TreeHop> next(nodes_.size());
  std::vector<bool> reached(nodes_.size(), false);
  std::vector<int> open = {to};
  reached[at(to)] = true;
  for (std::size_t head = 0; head < open.size() && !reached[at(from)]; ++head) {
    for (const TreeHop hop : hops(open[head])) {
      const int node = reaches(hop);
      if (reached[at(node)]) continue;
      reached[at(node)] = true;
      next[at(node)] = {hop.link, 1 - hop.direction};
      open.push_back(node);
    }
  }
  std::vector<TreeHop> result;
  for (int node = from; node != to; node = reaches(result.back())) result.push_back(next[at(node)]);
  return result;
}

std::vector<int> TreeTopology::depth_first(int rank) const {
  std::vector<int> order;
  std::vector<bool> reached(nodes_.size(), false);
  std::vector<int> open = {node_of(rank)};
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    reached[at(node)] = true;
    if (nodes_[at(node)].rank >= 0) order.push_back(nodes_[at(node)].rank);
    // The chain need not return from the last subtree, so the subtree with the slowest link back comes last.
    std::vector<TreeHop> onward(hops(node).begin(), hops(node).end());
    const auto way_back = [this](TreeHop hop) { return links_[at(hop.link)].bandwidth[at(1 - hop.direction)]; };
    std::stable_sort(onward.begin(), onward.end(), [&](TreeHop a, TreeHop b) { return way_back(a) > way_back(b); });
    for (auto hop = onward.rbegin(); hop != onward.rend(); ++hop) {
      if (!reached[at(reaches(*hop))]) open.push_back(reaches(*hop));
    }
  }
  return order;
}

TreeTopology TreeTopology::part(std::span<const int> ranks) const {
  TreeTopology whole = *this;
  for (TreeNode& node : whole.nodes_) node.rank = -1;
  for (std::size_t i = 0; i < ranks.size(); ++i) whole.nodes_[at(node_of(ranks[i]))].rank = static_cast<int>(i);
  // Removes relays with at most one neighbour, which lead nowhere, until there are no more of them.
  std::vector<std::size_t> degree(nodes_.size());
  std::vector<int> bare;
  const auto is_bare = [&](int node) { return degree[at(node)] <= 1 && whole.nodes_[at(node)].rank < 0; };
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    degree[node] = hops(static_cast<int>(node)).size();
    if (is_bare(static_cast<int>(node))) bare.push_back(static_cast<int>(node));
  }
  std::vector<bool> is_left_out(nodes_.size(), false);
  while (!bare.empty()) {
    const int node = bare.back();
    bare.pop_back();
    is_left_out[at(node)] = true;
    for (const TreeHop hop : hops(node)) {
      const int other = reaches(hop);
      if (is_left_out[at(other)]) continue;
      --degree[at(other)];
      if (is_bare(other)) bare.push_back(other);
    }
  }
  TreeTopology result;
  std::vector<int> new_number(nodes_.size(), -1);
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (is_left_out[node]) continue;
    new_number[node] = static_cast<int>(result.nodes_.size());
    result.nodes_.push_back(whole.nodes_[node]);
  }
  for (TreeLink link : links_) {
    if (is_left_out[at(link.ends[0])] || is_left_out[at(link.ends[1])]) continue;
    for (int& end : link.ends) end = new_number[at(end)];
    result.links_.push_back(link);
  }
  const auto root = std::find(ranks.begin(), ranks.end(), root_);
  result.root_ = root == ranks.end() ? 0 : static_cast<int>(root - ranks.begin());
  result.index();
  return result;
}

TreeTopology TreeTopology::reversed() const {
  TreeTopology result = *this;
  for (TreeLink& link : result.links_) {
    std::swap(link.bandwidth[0], link.bandwidth[1]);
    std::swap(link.latency_ns[0], link.latency_ns[1]);
  }
  return result;
}

std::string TreeTopology::text() const {
  std::string text;
  for (const TreeNode& node : nodes_) text += "node " + node.name + (node.rank >= 0 ? " comm\n" : " relay\n");
  for (const TreeLink& link : links_) {
    text += "link " + nodes_[at(link.ends[0])].name + " " + nodes_[at(link.ends[1])].name;
    for (const std::int64_t bandwidth : link.bandwidth) text += " " + std::to_string(bandwidth) + "B/s";
    for (const std::int64_t latency : link.latency_ns) text += " " + std::to_string(latency) + "ns";
    text += link.half_duplex ? " half\n" : " full\n";
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    text += "rank " + std::to_string(rank) + " " + nodes_[at(node_of(rank))].name + "\n";
  }
  return text + "root " + nodes_[at(node_of(root_))].name + "\n";
}

}  // namespace torii
