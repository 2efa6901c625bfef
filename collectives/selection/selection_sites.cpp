// SPDX-License-Identifier: Apache-2.0
// From a tree of links and measured rates to the numbers of lanes.
#include "collectives/selection/selection_sites.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "collectives/building/multilane_trees.hpp"
#include "collectives/building/sites.hpp"
#include "collectives/selection/catalogue.hpp"

namespace torii {
namespace {

/// Below, a block crosses in one message, and handing it on costs more than the link.
constexpr std::size_t kShortBlockBytes = 2048;
constexpr std::size_t kSegmentBytesMin = std::size_t{4} << 10;
constexpr std::size_t kSegmentBytesMax = std::size_t{64} << 10;
/// Of a stream that nobody has measured: what TCP has under way without window scaling, or just out of slow start.
constexpr double kWindowBytes = 65536;
constexpr int kLanesMax = 255;
/// Blocks of unequal lengths are known to their own ends alone when lanes are chosen, so these are chosen as for long
/// ones: streams that are too many for short blocks cost less than streams that are too few for long ones.
constexpr std::size_t kUnequalBlockBytes = std::size_t{1} << 20;

constexpr const char* kAsIf = " as if all blocks had 1 MiB";
/// As many messages of a sweep as a tune file may ask for.
constexpr std::size_t kInFlightMax = 32;

bool is_unequal(std::size_t bytes) { return bytes == std::numeric_limits<std::size_t>::max(); }

std::size_t block_bytes(const PlanRequest& request, std::size_t bytes) {
  return is_unequal(bytes) ? kUnequalBlockBytes : bytes / static_cast<std::size_t>(request.topology.ranks());
}

std::vector<double> rates_between(const SiteWay& way, std::span<const StreamRates> streams) {
  for (const auto& [from, to] : {std::pair(way.from, way.to), std::pair(way.to, way.from)}) {
    for (const StreamRates& one : streams) {
      if (one.from == from && one.to == to) return one.rates;
    }
  }
  return {};
}

/// The root's site sends to all others over one link where there is one link.
double root_capacity(std::span<const LongLink> links) {
  double most = 0;
  for (const LongLink& link : links) most = std::max(most, link.capacity);
  return most;
}

std::string text_of(std::span<const LaneChoice> choices, bool is_given, bool is_unequal) {
  double time_s = 0;
  std::string lanes;
  for (const LaneChoice& choice : choices) {
    time_s = std::max(time_s, choice.time_s);
    lanes += (lanes.empty() ? "" : ", ") + std::to_string(choice.lanes);
  }
  char text[48];
  std::snprintf(text, sizeof(text), ", %.4g ms", 1e3 * time_s);
  return (is_given ? "by the row, with the time of the model" : "by the model") +
         (" of lanes between sites: lanes " + lanes) + text + (is_unequal ? kAsIf : "");
}

bool serves(const PlanRequest& request, std::size_t bytes) {
  if (request.topology.tree() == nullptr) return false;
  PlanRequest tuned = request;
  tuned.tuning = multilane_tuning(request, bytes);
  const Algorithm* const multilane = find_algorithm("multilane");
  return multilane != nullptr && multilane->why_not(tuned).empty();
}

/// Those to other sites.
std::vector<LongLink> links_away(const PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams) {
  std::vector<LongLink> links = long_links(request, bytes, streams);
  std::erase_if(links, [](const LongLink& link) { return link.ranks == 0; });
  return links;
}

/// Of a broadcast, reduce or allreduce, which has as many lanes to every site: until the slowest is done.
double whole_vector_time_s(const PlanRequest& request, std::span<const LongLink> links, int lanes, double bytes) {
  const auto time_s = request.collective == Collective::allreduce ? exchange_time_s : spread_time_s;
  double longest_s = 0;
  for (const LongLink& link : links) {
    longest_s = std::max(longest_s, time_s(link, lanes, bytes, static_cast<int>(links.size())));
  }
  return longest_s;
}

/// The fewest lanes that are within 2 % of the least time: a short vector is as quick over one as over many.
LaneChoice choose_for_vector(const PlanRequest& request, std::span<const LongLink> links, std::size_t bytes) {
  constexpr double kNearlyLeast = 1.02;
  PlanRequest most = request;
  most.tuning.lanes = {};
  std::vector<double> times_s;
  for (int lanes = 1, end = std::min(tree_lanes(most), kLanesMax); lanes <= end; ++lanes) {
    times_s.push_back(whole_vector_time_s(request, links, lanes, static_cast<double>(bytes)));
  }
  const double least_s = *std::min_element(times_s.begin(), times_s.end());
  const auto chosen =
      std::find_if(times_s.begin(), times_s.end(), [&](double time_s) { return time_s <= kNearlyLeast * least_s; });
  return {static_cast<int>(chosen - times_s.begin()) + 1, *chosen};
}

/// Of an alltoall: until the ranks of every site are done.
double sweep_time_s(PlanRequest request, std::size_t bytes, std::span<const StreamRates> streams, int in_flight) {
  const Sites sites = sites_of(*request.topology.tree());
  double longest_s = 0;
  for (const std::vector<int>& ranks : sites.ranks) {
    request.root = ranks.front();
    longest_s = std::max(longest_s, sweep_time_s(links_away(request, bytes, streams), in_flight));
  }
  return longest_s;
}

/// The fewest messages under way from each rank that are within 15 % of the least time: where streams that nobody needs
/// come together a link loses packets, which costs more than that (docs/algorithms.md, "Lanes between sites").
std::string choose_in_flight(PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams) {
  constexpr double kNearlyLeast = 1.15;
  const Sites sites = sites_of(*request.topology.tree());
  std::size_t largest = 1;
  for (const std::vector<int>& ranks : sites.ranks) largest = std::max(largest, ranks.size());
  const auto most = static_cast<int>(std::min<std::size_t>(largest, kInFlightMax));
  std::vector<double> times_s;
  for (int count = 1; count <= most; ++count) times_s.push_back(sweep_time_s(request, bytes, streams, count));
  const double least_s = *std::min_element(times_s.begin(), times_s.end());
  const auto chosen =
      std::find_if(times_s.begin(), times_s.end(), [&](double time_s) { return time_s <= kNearlyLeast * least_s; });
  const int in_flight = static_cast<int>(chosen - times_s.begin()) + 1;
  request.tuning.window = in_flight;
  char text[160];
  std::snprintf(text, sizeof(text), "by the model of lanes between sites: %d from each rank, %.4g ms%s", in_flight,
                1e3 * *chosen, is_unequal(bytes) ? kAsIf : "");
  return text;
}

double time_over_lanes_s(PlanRequest request, std::size_t bytes, std::span<const StreamRates> streams) {
  request.tuning = multilane_tuning(request, bytes);
  return choose_for_vector(request, links_away(request, bytes, streams), bytes).time_s;
}

/// Every rank of a site sends the whole vector to a rank beyond the link, at once.
double flat_time_s(const PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams) {
  double longest_s = 0;
  for (const LongLink& link : links_away(request, bytes, streams)) {
    longest_s =
        std::max(longest_s, crossing_s(link, std::min(link.root_ranks, link.ranks), static_cast<double>(bytes)));
  }
  return longest_s;
}

}  // namespace

bool asks_lanes_model(const PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams) {
  const bool is_exchange = request.collective == Collective::allreduce;
  // An alltoall by direct keeps the link as busy: multilane's window, measured beside it, made it slower.
  if (request.collective == Collective::alltoall) return false;
  if (!is_exchange && !is_personalised(request.collective)) return false;
  if (!is_exchange && block_bytes(request, bytes) <= kShortBlockBytes) return false;
  if (!serves(request, bytes)) return false;
  return !is_exchange || time_over_lanes_s(request, bytes, streams) < flat_time_s(request, bytes, streams);
}

bool lanes_beat_tree(const PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams,
                     double tree_time_s) {
  if (!serves(request, bytes)) return false;
  double one_stream_s = 0;
  for (const LongLink& link : links_away(request, bytes, streams)) {
    one_stream_s = std::max(one_stream_s, crossing_s(link, 1, static_cast<double>(bytes)));
  }
  // The tree's model knows no windows, so its choice takes as long as one stream does. Where that fills the link lanes
  // are no better, or by less than the models can tell.
  constexpr double kQuicker = 0.95;
  return time_over_lanes_s(request, bytes, streams) < kQuicker * std::max(one_stream_s, tree_time_s);
}

Tuning multilane_tuning(const PlanRequest& request, std::size_t bytes) {
  // Nobody hands on the blocks of an alltoall, so they need not come in parts.
  if (request.collective == Collective::alltoall) return {.segment_bytes = std::size_t{32} << 10, .slots = 8};
  // Four segments and more per block keep all hops of its way busy; 16 of them cover a long round trip. A share of a
  // whole vector is what a block is here.
  std::size_t share = block_bytes(request, bytes);
  if (!is_personalised(request.collective)) {
    PlanRequest most = request;
    most.tuning.lanes = {};
    share = bytes / static_cast<std::size_t>(request.topology.tree() == nullptr ? 1 : tree_lanes(most));
  }
  const std::size_t quarter = (share / 4 + 63) / 64 * 64;
  Tuning tuning;
  tuning.segment_bytes = std::clamp(quarter, kSegmentBytesMin, kSegmentBytesMax);
  tuning.slots = 16;
  tuning.window = 8;
  return tuning;
}

std::vector<LongLink> long_links(const PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams) {
  const TreeTopology& tree = *request.topology.tree();
  const Sites sites = sites_of(tree);
  const int root_site = sites.of_rank[static_cast<std::size_t>(request.root)];
  const bool comes_in = request.collective == Collective::gather || request.collective == Collective::reduce;
  std::vector<LongLink> links;
  for (int site = 0; site < static_cast<int>(sites.ranks.size()); ++site) {
    LongLink& link = links.emplace_back();
    link.root_ranks = static_cast<int>(sites.ranks[static_cast<std::size_t>(root_site)].size());
    link.ranks = 0;
    if (site == root_site) continue;
    const SiteWay way = way_between(tree, sites, comes_in ? site : root_site, comes_in ? root_site : site);
    link.ranks = static_cast<int>(sites.ranks[static_cast<std::size_t>(site)].size());
    link.bytes = static_cast<double>(block_bytes(request, bytes));
    link.latency_s = way.latency_s;
    link.window_bytes = kWindowBytes;
    link.capacity = way.capacity;
    link.site_rate = way.site_rate;
    link.segment_bytes = static_cast<double>(request.tuning.segment_bytes);
    link.rates = rates_between(way, streams);
    // Beyond what was measured each stream is taken for one like the first, as long as the link holds them.
    if (!link.rates.empty()) link.window_bytes = link.rates.front() * 2 * way.latency_s;
  }
  return links;
}

std::string choose_lanes(PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams) {
  SiteLanes& lanes = request.tuning.lanes;
  const bool is_given = lanes != SiteLanes{};
  if (request.collective == Collective::alltoall) {
    if (is_given) return "by the row: " + std::to_string(request.tuning.window) + " from each rank between sites";
    return choose_in_flight(request, bytes, streams);
  }
  if (!is_personalised(request.collective)) {
    const std::vector<LongLink> links = links_away(request, bytes, streams);
    LaneChoice choice = {is_given ? tree_lanes(request) : 1, 0};
    if (!is_given) choice = choose_for_vector(request, links, bytes);
    choice.time_s = whole_vector_time_s(request, links, choice.lanes, static_cast<double>(bytes));
    lanes.fill(static_cast<std::uint8_t>(choice.lanes));
    return text_of(std::span(&choice, 1), is_given, false);
  }
  std::vector<LongLink> links = long_links(request, bytes, streams);
  std::vector<std::size_t> sites;  // without the root's
  for (std::size_t site = 0; site < links.size(); ++site) {
    if (links[site].ranks > 0) sites.push_back(site);
  }
  std::erase_if(links, [](const LongLink& link) { return link.ranks == 0; });
  std::vector<LaneChoice> choices;
  if (!is_given && links.size() == 1) choices = {choose_lanes(links.front(), true)};
  if (!is_given && links.size() > 1) choices = choose_lanes(links, root_capacity(links), true);
  // Lanes that are given; or more sites than the root's has ranks: one lane each, for which heads take turns.
  for (std::size_t i = choices.size(); i < links.size(); ++i) {
    const int asked = is_given ? lanes[sites[i]] : 1;
    const int most = std::min(links[i].root_ranks, links[i].ranks);
    const int taken = asked == 0 ? most : std::min(asked, most);
    choices.push_back({taken, lanes_time_s(links[i], taken, true)});
  }
  for (std::size_t i = 0; i < sites.size(); ++i) {
    lanes[sites[i]] = static_cast<std::uint8_t>(std::min(choices[i].lanes, 255));
  }
  return text_of(choices, is_given, is_unequal(bytes));
}

}  // namespace torii
