// SPDX-License-Identifier: Apache-2.0
// chain: the ranks of a tree of links in depth-first order, each handing segments to the next.
//
//     0 --+          root 0: depth first 0 1 2 3, so
//     1 --s          broadcast  0 -> 1 -> 2 -> 3, segment after segment
//         |          reduce     0 <- 1 <- 2 <- 3: 2 folds its own operand, then what 3 sends, and so on
//     2 --t-- 3
//
// Source: the pipelined chain of Hourai, Nishida, Oyanagi 2004 taken further (docs/algorithms/chain.md).
// Cost: every directed link carries the vector once. So the first segment takes P - 1 hops, each other one a segment's
// time on the slowest link.
// Order: own, then the next rank's value.
#include <algorithm>
#include <cstdio>
#include <limits>

#include "collectives/building/lane_choice.hpp"
#include "collectives/building/tree_flows.hpp"
#include "collectives/schedules/schedule.hpp"
#include "runtime/base/tuned_constants.hpp"

namespace torii {
namespace {

/// The time that a rank needs for one more segment besides its bytes.
constexpr auto kSegmentSeconds = tuned<double>("chain.segment_time");
/// The overhead of a segment on a link, beside its bytes.
constexpr auto kSegmentExtraBytes = tuned<std::size_t>("chain.segment_bytes");

/// Credits for a segment come back a round trip after it has left: so many slots hold what a long hop has under way.
constexpr int kSlotsLeast = 8;
constexpr int kSlotsMost = 256;

std::vector<int> order_of_ranks(const PlanRequest& request) {
  const TreeTopology* const tree = request.topology.tree();
  return tree != nullptr ? tree->depth_first(request.root) : ranks_from_root(request);
}

ExpressionId order(const PlanRequest& request, int /*block*/, ExpressionPool& pool) {
  return chain_order(request, order_of_ranks(request), pool);
}

std::string why_not(const PlanRequest& request) {
  std::string reason = why_not_any("chain", {Collective::broadcast, Collective::reduce}, request);
  if (!reason.empty()) return reason;
  if (request.topology.kind() == Topology::Kind::torus) {
    return "chain stands on a tree of links; on " + request.topology.text() + " use trinaryx3";
  }
  return why_not_canonical(request, order);
}

Plan make_plan(const PlanRequest& request, int rank) {
  return chain_plan(request, rank, order_of_ranks(request), "up chain", "down chain");
}

struct LongestHop {
  double latency_s = 0;
  double bytes = 0;  ///< under way in a round trip, the most of any hop
};
LongestHop longest_hop(const TreeTopology& tree, int root) {
  LongestHop longest;
  const std::vector<int> order = tree.depth_first(root);
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    double rate = std::numeric_limits<double>::infinity();
    double latency_s = 0;
    for (const TreeHop hop : tree.way(tree.node_of(order[i]), tree.node_of(order[i + 1]))) {
      const TreeLink& link = tree.links()[static_cast<std::size_t>(hop.link)];
      rate = std::min(rate, static_cast<double>(link.bandwidth[static_cast<std::size_t>(hop.direction)]));
      latency_s += 1e-9 * static_cast<double>(link.latency_ns[static_cast<std::size_t>(hop.direction)]);
    }
    longest.latency_s = std::max(longest.latency_s, latency_s);
    longest.bytes = std::max(longest.bytes, 2 * latency_s * rate);
  }
  return longest;
}

double chain_seconds(const TreeTopology& tree, int root, double longest_s, std::size_t bytes,
                     std::size_t segment_bytes) {
  const double segments = static_cast<double>(std::max<std::size_t>(1, bytes)) / static_cast<double>(segment_bytes);
  const double by_slots_s = segments * 2 * longest_s / kSlotsMost;
  const std::size_t carried_bytes = bytes + static_cast<std::size_t>(segments * kSegmentExtraBytes);
  const double by_links_s = chain_time_s(tree, root, carried_bytes, segment_bytes + kSegmentExtraBytes);
  return std::max(by_links_s, by_slots_s) + segments * kSegmentSeconds;
}

/// The quickest length of segments. The model of the tree knows no windows, so the chain takes at least as long as one
/// stream between sites does.
CostEstimate estimate(const EstimateRequest& request) {
  CostEstimate estimate = {.tuning = {64 * 1024, kSlotsLeast, 4, false}};
  if (request.plan.topology.tree() == nullptr) return estimate;
  estimate.holds = {request.bytes, request.bytes};
  const TreeTopology tree = directed_tree(request.plan);
  const int root = request.plan.root;
  const LongestHop hop = longest_hop(tree, root);
  double best_s = std::numeric_limits<double>::infinity();
  for (const std::size_t kib : {64, 256, 16, 8, 4}) {
    const double time_s = chain_seconds(tree, root, hop.latency_s, request.bytes, kib << 10);
    if (time_s >= best_s) continue;
    best_s = time_s;
    estimate.tuning.segment_bytes = kib << 10;
  }
  const double under_way = hop.bytes / static_cast<double>(estimate.tuning.segment_bytes);
  // Cut before it becomes a whole number: a round trip of an hour holds more segments than an int counts.
  estimate.tuning.slots = std::max(static_cast<int>(std::min<double>(under_way + 2, kSlotsMost)), kSlotsLeast);
  if (request.is_tuned) return estimate;
  estimate.seconds = std::max(best_s, streams_time_s(request, 1));
  char text[64];
  std::snprintf(text, sizeof(text), "by the tree's model: chain %.4g ms", 1e3 * best_s);
  estimate.why = text;
  return estimate;
}

}  // namespace

extern const Algorithm kChain = {"chain", "depth-first pipeline; docs/algorithms/chain.md", why_not, make_plan, order,
                                 estimate};

}  // namespace torii
