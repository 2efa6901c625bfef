// SPDX-License-Identifier: Apache-2.0
// The network model of the schedule search: paths between ranks, rates and durations.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/topology/topology.hpp"

namespace torii::scheduling {

/// Time in integer units, so that sums do not depend on their order. A schedule has some 10^17 units.
using Ticks = std::int64_t;
inline constexpr Ticks kNever = INT64_MAX;

constexpr std::size_t at(int value) { return static_cast<std::size_t>(value); }

/// One link of a path.
struct Hop {
  int resource = 0;  ///< the occupied resource: 2 x link + direction, or 2 x link if the link is half duplex
  int link = 0;
  int direction = 0;
  int to = 0;        ///< the node at the end of the link
  Ticks before = 0;  ///< sum of the latencies of the path's earlier links
};

/// The path between two ranks.
struct Way {
  std::int64_t rate = 0;  ///< the least bandwidth of its links, bytes per second
  Ticks duration = 0;     ///< of the message at that rate
  Ticks latency = 0;      ///< sum over its links
  std::size_t first_hop = 0;
  std::size_t hop_count = 0;
};

class Model {
 public:
  /// Without `with_latency` all latencies count as 0.
  Model(const TreeTopology& tree, std::size_t bytes, bool with_latency);

  const TreeTopology& tree() const { return *tree_; }
  int ranks() const { return tree_->ranks(); }
  int nodes() const { return static_cast<int>(tree_->nodes().size()); }
  int resources() const { return 2 * static_cast<int>(tree_->links().size()); }
  double bytes() const { return bytes_; }

  const Way& way(int sender, int receiver) const { return ways_[at(sender) * at(ranks()) + at(receiver)]; }
  std::span<const Hop> hops(const Way& way) const { return std::span(hops_).subspan(way.first_hop, way.hop_count); }
  int resource(TreeHop hop) const {
    return 2 * hop.link + (tree_->links()[at(hop.link)].half_duplex ? 0 : hop.direction);
  }
  std::int64_t capacity(int resource) const { return tree_->links()[at(resource / 2)].bandwidth[at(resource % 2)]; }
  std::int64_t bandwidth(TreeHop hop) const { return tree_->links()[at(hop.link)].bandwidth[at(hop.direction)]; }
  Ticks latency(TreeHop hop) const;
  /// The duration of the whole message at a rate.
  Ticks duration(std::int64_t rate) const;
  double seconds(Ticks ticks) const { return static_cast<double>(ticks) / ticks_per_second_; }
  double ticks_per_second() const { return ticks_per_second_; }

 private:
  void add_ways_from(int rank);

  const TreeTopology* tree_;
  double bytes_;
  bool with_latency_;
  double ticks_per_second_ = 1;
  std::vector<Way> ways_;
  std::vector<Hop> hops_;
};

}  // namespace torii::scheduling
