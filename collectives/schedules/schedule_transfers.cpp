// SPDX-License-Identifier: Apache-2.0
// Gives each transfer its times in seconds and the transfers that it must wait for.
#include "collectives/schedules/schedule_transfers.hpp"

#include <algorithm>

namespace torii {
namespace scheduling {
namespace {

/// The use of one resource by one transfer.
struct Use {
  std::size_t transfer = 0;
  Ticks begin = 0;
  Ticks end = 0;
};

/// For each resource its uses, in the order of the transfers.
std::vector<std::vector<Use>> uses_of(const Model& model, const std::vector<Move>& moves) {
  std::vector<std::vector<Use>> uses(at(model.resources()));
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const Way& way = model.way(moves[i].sender, moves[i].receiver);
    for (const Hop& hop : model.hops(way)) {
      const Ticks begin = moves[i].start + hop.before;
      uses[at(hop.resource)].push_back({i, begin, begin + way.duration});
    }
  }
  return uses;
}

/// Adds the direct predecessors of `use` on its resource: uses that ended before `use` began, without those that ended
/// before another predecessor began.
void add_predecessors(const std::vector<Use>& uses, const Use& use, std::vector<int>& after) {
  const auto precedes = [](const Use& a, const Use& b) { return a.transfer < b.transfer && a.end <= b.begin; };
  for (const Use& before : uses) {
    if (!precedes(before, use)) continue;
    const bool is_latest = std::none_of(uses.begin(), uses.end(), [&](const Use& between) {
      return precedes(before, between) && precedes(between, use);
    });
    if (is_latest) after.push_back(static_cast<int>(before.transfer));
  }
}

}  // namespace

std::vector<Transfer> transfers_of(const Model& model, std::vector<Move> moves) {
  std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.start < b.start; });
  std::vector<Transfer> transfers;
  for (const Move& move : moves) {
    const Way& way = model.way(move.sender, move.receiver);
    transfers.push_back({move.sender, move.receiver, model.seconds(move.start),
                         model.seconds(move.start + way.latency + way.duration)});
  }
  for (const std::vector<Use>& uses : uses_of(model, moves)) {
    for (const Use& use : uses) add_predecessors(uses, use, transfers[use.transfer].after);
  }
  for (Transfer& transfer : transfers) {
    std::sort(transfer.after.begin(), transfer.after.end());
    transfer.after.erase(std::unique(transfer.after.begin(), transfer.after.end()), transfer.after.end());
  }
  return transfers;
}

}  // namespace scheduling

double chain_time_s(const TreeTopology& tree, int root, std::size_t bytes, std::size_t segment_bytes) {
  const std::vector<int> order = tree.depth_first(root);
  double slowest_s = 0;  // the bottleneck for one segment: a step of the chain, or all crossings of a half-duplex link
  double ways_s = 0;     // the first segment through the whole chain
  std::vector<double> shared_s(tree.links().size(), 0);  // by half-duplex link: all crossings of one segment so far
  const auto segment = static_cast<double>(std::max<std::size_t>(1, std::min(bytes, segment_bytes)));
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    double rate = 1e30;
    double latency_s = 0;
    for (const TreeHop hop : tree.way(tree.node_of(order[i]), tree.node_of(order[i + 1]))) {
      const TreeLink& link = tree.links()[static_cast<std::size_t>(hop.link)];
      rate = std::min(rate, static_cast<double>(link.bandwidth[static_cast<std::size_t>(hop.direction)]));
      latency_s += 1e-9 * static_cast<double>(link.latency_ns[static_cast<std::size_t>(hop.direction)]);
      if (!link.half_duplex) continue;
      double& taken_s = shared_s[static_cast<std::size_t>(hop.link)];
      taken_s += segment / static_cast<double>(link.bandwidth[static_cast<std::size_t>(hop.direction)]);
      slowest_s = std::max(slowest_s, taken_s);
    }
    slowest_s = std::max(slowest_s, segment / rate);
    ways_s += segment / rate + latency_s;
  }
  const double segments = static_cast<double>(std::max<std::size_t>(1, bytes)) / segment;
  return ways_s + (segments - 1) * slowest_s;
}

}  // namespace torii
