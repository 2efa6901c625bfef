// SPDX-License-Identifier: Apache-2.0
// The choice between scheduled and chain by their times in the model.
#include "collectives/selection/selection_trees.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <limits>
#include <vector>

#include "collectives/building/sites.hpp"
#include "collectives/schedules/schedule_cache.hpp"

namespace torii {
namespace {

/// A slot holds a whole segment, and a rank has some 15 streams at most: so a team's staging holds the plan.
constexpr std::size_t kWholeBytesMax = std::size_t{4} << 20;

/// What handing on one more segment costs a rank beside its bytes. A guess at a system call and a wake-up: without it
/// the model would ask for segments of one byte.
constexpr double kSegmentSeconds = 5e-6;
/// And what a link carries for it beside its bytes: the signal's line, the provider's header, packets that are not
/// full. On links of 10 Mbit/s, over tcp;ofi_rxm, segments of 4 KiB take 2 to 3 % longer than those of 8 KiB.
constexpr std::size_t kSegmentExtraBytes = 256;

/// Credits for a segment come back a round trip after it has left: so many slots hold what a long hop has under way.
constexpr int kChainSlotsLeast = 8;
constexpr int kChainSlotsMost = 256;

TreeTopology directed(const PlanRequest& request) {
  return request.collective == Collective::reduce ? request.topology.tree()->reversed() : *request.topology.tree();
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

double chain_seconds(const TreeTopology& tree, int root, std::size_t bytes, std::size_t segment_bytes) {
  const double segments = static_cast<double>(std::max<std::size_t>(1, bytes)) / static_cast<double>(segment_bytes);
  const double by_slots_s = segments * 2 * longest_hop(tree, root).latency_s / kChainSlotsMost;
  const std::size_t carried_bytes = bytes + static_cast<std::size_t>(segments * kSegmentExtraBytes);
  const double by_links_s = chain_time_s(tree, root, carried_bytes, segment_bytes + kSegmentExtraBytes);
  return std::max(by_links_s, by_slots_s) + segments * kSegmentSeconds;
}

bool serves(const char* name, PlanRequest request, const Tuning& tuning) {
  request.tuning = tuning;
  const Algorithm* const algorithm = find_algorithm(name);
  return algorithm != nullptr && algorithm->why_not(request).empty();
}

/// Of the long links between two ranks. Inside a site a token takes about as long as a host does to hand something on,
/// which the model leaves out of chains as well.
double long_latency_s(const TreeTopology& tree, int from, int to) {
  double sum_s = 0;
  for (const TreeHop hop : tree.way(tree.node_of(from), tree.node_of(to))) {
    const TreeLink& link = tree.links()[static_cast<std::size_t>(hop.link)];
    const std::int64_t latency_ns = link.latency_ns[static_cast<std::size_t>(hop.direction)];
    if (latency_ns >= kLongLatencyNs) sum_s += 1e-9 * static_cast<double>(latency_ns);
  }
  return sum_s;
}

/// Of the schedule as it runs: the search has no time for the tokens by which receivers say that they have everything,
/// and over long links they are most of what a short message takes. A rank begins its transfers in their order.
double time_with_tokens_s(const TreeTopology& tree, const Schedule& schedule) {
  std::vector<double> ends_s;
  std::vector<double> begins_s(static_cast<std::size_t>(tree.ranks()), 0);  // by rank: no transfer begins before
  double last_s = 0;
  for (const Transfer& transfer : schedule.transfers) {
    double& begin_s = begins_s[static_cast<std::size_t>(transfer.sender)];
    begin_s = std::max(begin_s, transfer.start_s);
    for (const int before : transfer.after) {
      const int teller = schedule.transfers[static_cast<std::size_t>(before)].receiver;
      const double far_s = long_latency_s(tree, teller, transfer.sender);
      if (far_s > 0) begin_s = std::max(begin_s, ends_s[static_cast<std::size_t>(before)] + far_s);
    }
    ends_s.push_back(begin_s + transfer.end_s - transfer.start_s);
    begins_s[static_cast<std::size_t>(transfer.receiver)] = ends_s.back();
    last_s = std::max(last_s, ends_s.back());
  }
  return last_s;
}

std::string milliseconds(double seconds) {
  char text[48];
  std::snprintf(text, sizeof(text), "%.4g ms", 1e3 * seconds);
  return text;
}

}  // namespace

Tuning scheduled_tuning(std::size_t bytes) {
  const std::size_t power = std::bit_ceil(std::clamp(bytes, std::size_t{128}, kWholeBytesMax));
  const std::size_t between = power / 4 * 3;  // 96 of 128 would not be a multiple of 64
  return {power >= 256 && bytes <= between ? between : power, 1, 1, false};
}

Tuning chain_tuning(const PlanRequest& request, std::size_t bytes) {
  Tuning tuning = {64 * 1024, kChainSlotsLeast, 4, false};
  if (request.topology.tree() == nullptr) return tuning;
  const TreeTopology tree = directed(request);
  double best_s = chain_seconds(tree, request.root, bytes, tuning.segment_bytes);
  for (const std::size_t segment_bytes :
       {std::size_t{256} << 10, std::size_t{16} << 10, std::size_t{8} << 10, std::size_t{4} << 10}) {
    const double time_s = chain_seconds(tree, request.root, bytes, segment_bytes);
    if (time_s >= best_s) continue;
    best_s = time_s;
    tuning.segment_bytes = segment_bytes;
  }
  const double under_way = longest_hop(tree, request.root).bytes / static_cast<double>(tuning.segment_bytes);
  tuning.slots = std::clamp(static_cast<int>(under_way) + 2, kChainSlotsLeast, kChainSlotsMost);
  return tuning;
}

TreeChoice choose_on_tree(const PlanRequest& request, std::size_t bytes) {
  const Tuning whole = scheduled_tuning(bytes);
  const Tuning piped = chain_tuning(request, bytes);
  const bool chain_serves = serves("chain", request, piped);
  const bool scheduled_serves = bytes <= kWholeBytesMax && serves("scheduled", request, whole);
  if (!chain_serves && !scheduled_serves) return {};
  const TreeTopology tree = directed(request);
  const double chain_s = chain_seconds(tree, request.root, bytes, piped.segment_bytes);
  TreeChoice choice = {find_algorithm("chain"), piped, "by the tree's model: chain " + milliseconds(chain_s), chain_s};
  if (!scheduled_serves) {
    choice.why += ", and scheduled cannot serve it";
    return choice;
  }
  const auto schedule =
      kept_schedule(request.topology, request.root, whole.segment_bytes, request.collective == Collective::reduce);
  const double scheduled_s = time_with_tokens_s(tree, *schedule);
  choice.why +=
      ", scheduled " + milliseconds(schedule->time_s) + (schedule->proven ? " (proven least)" : " (not proven least)");
  if (scheduled_s > schedule->time_s * (1 + 1e-9)) choice.why += ", with tokens " + milliseconds(scheduled_s);
  if (!chain_serves || scheduled_s < chain_s) {
    choice.algorithm = find_algorithm("scheduled");
    choice.tuning = whole;
    choice.time_s = scheduled_s;
  }
  return choice;
}

}  // namespace torii
