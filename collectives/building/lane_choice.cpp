// SPDX-License-Identifier: Apache-2.0
// From a tree of links and measured rates to the numbers of lanes.
#include "collectives/building/lane_choice.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <vector>

#include "collectives/building/lanes_model.hpp"
#include "collectives/building/multilane_trees.hpp"
#include "collectives/building/sites.hpp"
#include "runtime/base/tuned_constants.hpp"

namespace torii {
namespace {

constexpr auto kSegmentBytesMin = tuned<std::size_t>("lanes.segment_bytes_min");
constexpr auto kSegmentBytesMax = tuned<std::size_t>("lanes.segment_bytes_max");
/// The window of a stream that has not been measured.
constexpr auto kWindowBytes = tuned<double>("lanes.window_bytes");
constexpr int kLanesMax = 255;
constexpr std::size_t kUnequalBlockBytes = std::size_t{1} << 20;

constexpr const char* kAsIf = " as if all blocks had 1 MiB";
/// As many messages of a pairwise exchange as a tune file may ask for.
constexpr std::size_t kInFlightMax = 32;

bool is_unequal(std::size_t bytes) { return bytes == std::numeric_limits<std::size_t>::max(); }

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

int site_of_root(const Sites& sites, const PlanRequest& request) {
  return sites.of_rank[static_cast<std::size_t>(request.root)];
}

/// To the sites other than the root's, in their order. Rates of the way back serve if only they are known. If nothing
/// was measured, a stream counts as one with 64 KiB under way.
std::vector<LongLink> links_away(const EstimateRequest& request) {
  const TreeTopology& tree = *request.plan.topology.tree();
  const Sites sites = sites_of(tree);
  const int root_site = site_of_root(sites, request.plan);
  const Collective collective = request.plan.collective;
  const bool comes_in = collective == Collective::gather || collective == Collective::reduce;
  std::vector<LongLink> links;
  for (int site = 0; site < static_cast<int>(sites.ranks.size()); ++site) {
    if (site == root_site) continue;
    const SiteWay way = way_between(tree, sites, comes_in ? site : root_site, comes_in ? root_site : site);
    LongLink& link = links.emplace_back();
    link.root_ranks = static_cast<int>(sites.ranks[static_cast<std::size_t>(root_site)].size());
    link.ranks = static_cast<int>(sites.ranks[static_cast<std::size_t>(site)].size());
    link.bytes = static_cast<double>(block_bytes(request));
    link.latency_s = way.latency_s;
    link.window_bytes = kWindowBytes;
    link.capacity = way.capacity;
    link.site_rate = way.site_rate;
    link.segment_bytes = static_cast<double>(request.plan.tuning.segment_bytes);
    link.rates = rates_between(way, request.streams);
    // Beyond what was measured each stream is taken for one like the first, as long as the link holds them.
    if (!link.rates.empty()) link.window_bytes = link.rates.front() * 2 * way.latency_s;
  }
  return links;
}

/// The time of a broadcast, reduce or allreduce with so many lanes to every site: that of the slowest site.
double whole_vector_time_s(const PlanRequest& request, std::span<const LongLink> links, int lanes, double bytes) {
  const auto time_s = request.collective == Collective::allreduce ? allreduce_time_s : spread_time_s;
  double longest_s = 0;
  for (const LongLink& link : links) {
    longest_s = std::max(longest_s, time_s(link, lanes, bytes, static_cast<int>(links.size())));
  }
  return longest_s;
}

/// The place of the first time that is within this factor of the least one.
int nearly_least(std::span<const double> times_s, double factor) {
  const double most_s = factor * *std::min_element(times_s.begin(), times_s.end());
  const auto chosen = std::find_if(times_s.begin(), times_s.end(), [=](double time_s) { return time_s <= most_s; });
  return static_cast<int>(chosen - times_s.begin());
}

/// The time of an alltoall: until the ranks of every site are done.
double alltoall_time_s(PlanRequest plan, const EstimateRequest& request, int in_flight) {
  double longest_s = 0;
  for (const std::vector<int>& ranks : sites_of(*plan.topology.tree()).ranks) {
    plan.root = ranks.front();
    const std::vector<LongLink> links = links_away({.plan = plan, .bytes = request.bytes, .streams = request.streams});
    longest_s = std::max(longest_s, alltoall_time_s(links, in_flight));
  }
  return longest_s;
}

/// The fewest messages in flight from each rank that are within 15 % of the least time. A link with more streams than
/// necessary overfills queues and loses packets, which costs more than that.
CostEstimate estimate_in_flight(const EstimateRequest& request) {
  CostEstimate estimate = {.tuning = request.plan.tuning};
  if (estimate.tuning.lanes != SiteLanes{}) {
    estimate.why = "by the row: " + std::to_string(estimate.tuning.window) + " from each rank between sites";
    return estimate;
  }
  std::size_t most = 1;
  for (const auto& ranks : sites_of(*request.plan.topology.tree()).ranks) most = std::max(most, ranks.size());
  std::vector<double> times_s;
  for (int count = 1; count <= static_cast<int>(std::min(most, kInFlightMax)); ++count) {
    times_s.push_back(alltoall_time_s(request.plan, request, count));
  }
  const int place = nearly_least(times_s, 1.15);
  estimate.tuning.window = place + 1;
  estimate.seconds = times_s[static_cast<std::size_t>(place)];
  char text[160];
  std::snprintf(text, sizeof(text), "by the model of lanes between sites: %d from each rank, %.4g ms%s", place + 1,
                1e3 * estimate.seconds, is_unequal(request.bytes) ? kAsIf : "");
  estimate.why = text;
  return estimate;
}

/// As many lanes to every site: the fewest that are within 2 % of the least time. A short vector is as quick over one
/// lane as over many.
CostEstimate estimate_for_vector(const EstimateRequest& request) {
  CostEstimate estimate = {.tuning = request.plan.tuning};
  const std::vector<LongLink> links = links_away(request);
  const auto bytes = static_cast<double>(request.bytes);
  const bool is_given = estimate.tuning.lanes != SiteLanes{};
  int lanes = std::min(tree_lanes(request.plan), kLanesMax);  // as many as are given, or as there can be
  if (!is_given) {
    std::vector<double> times_s;
    for (int count = 1; count <= lanes; ++count) {
      times_s.push_back(whole_vector_time_s(request.plan, links, count, bytes));
    }
    lanes = nearly_least(times_s, 1.02) + 1;
  }
  const LaneChoice choice = {lanes, whole_vector_time_s(request.plan, links, lanes, bytes)};
  estimate.tuning.lanes.fill(static_cast<std::uint8_t>(lanes));
  estimate.seconds = choice.time_s;
  estimate.why = text_of(std::span(&choice, 1), is_given, false);
  return estimate;
}

CostEstimate offer_for_blocks(const EstimateRequest& request) {
  CostEstimate estimate = {.tuning = request.plan.tuning, .seconds = 0};
  const std::vector<LongLink> links = links_away(request);
  const int root_site = site_of_root(sites_of(*request.plan.topology.tree()), request.plan);
  const auto site_of = [&](std::size_t link) { return static_cast<int>(link) < root_site ? link : link + 1; };
  SiteLanes& lanes = estimate.tuning.lanes;
  const bool is_given = lanes != SiteLanes{};
  std::vector<LaneChoice> choices;
  if (!is_given && links.size() == 1) choices = {choose_lanes(links.front())};
  if (!is_given && links.size() > 1) choices = choose_lanes(links, root_capacity(links));
  // Lanes that are given; or more sites than the root's has ranks: one lane each, for which heads take turns.
  for (std::size_t i = choices.size(); i < links.size(); ++i) {
    const int asked = is_given ? lanes[site_of(i)] : 1;
    const int most = std::min(links[i].root_ranks, links[i].ranks);
    const int taken = asked == 0 ? most : std::min(asked, most);
    choices.push_back({taken, lanes_time_s(links[i], taken)});
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    lanes[site_of(i)] = static_cast<std::uint8_t>(std::min(choices[i].lanes, kLanesMax));
    estimate.seconds = std::max(estimate.seconds, choices[i].time_s);
  }
  estimate.why = text_of(choices, is_given, is_unequal(request.bytes));
  return estimate;
}

}  // namespace

TreeTopology directed_tree(const PlanRequest& request) {
  return request.collective == Collective::reduce ? request.topology.tree()->reversed() : *request.topology.tree();
}

double streams_time_s(const EstimateRequest& request, int streams_most) {
  double longest_s = 0;
  for (const LongLink& link : links_away(request)) {
    const int streams = std::min({link.root_ranks, link.ranks, streams_most});
    longest_s = std::max(longest_s, crossing_s(link, streams, static_cast<double>(request.bytes)));
  }
  return longest_s;
}

std::size_t block_bytes(const EstimateRequest& request) {
  const auto ranks = static_cast<std::size_t>(request.plan.topology.ranks());
  return is_unequal(request.bytes) ? kUnequalBlockBytes : request.bytes / ranks;
}

Tuning lanes_tuning(const EstimateRequest& request) {
  // No rank forwards the blocks of an alltoall, so they need not be divided into segments.
  if (request.plan.collective == Collective::alltoall) return {.segment_bytes = std::size_t{32} << 10, .slots = 8};
  // Four or more segments per block keep all hops of its way busy; 16 of them cover a long round trip. For a whole
  // vector a lane's share is the block.
  std::size_t share = block_bytes(request);
  if (!is_personalised(request.plan.collective)) {
    PlanRequest most = request.plan;
    most.tuning.lanes = {};
    share = request.bytes / static_cast<std::size_t>(most.topology.tree() == nullptr ? 1 : tree_lanes(most));
  }
  const std::size_t quarter = (share / 4 + 63) / 64 * 64;
  return {.segment_bytes = std::clamp(quarter, kSegmentBytesMin, kSegmentBytesMax), .slots = 16, .window = 8};
}

CostEstimate estimate_lanes(const EstimateRequest& request) {
  if (request.plan.collective == Collective::alltoall) return estimate_in_flight(request);
  return is_personalised(request.plan.collective) ? offer_for_blocks(request) : estimate_for_vector(request);
}

}  // namespace torii
