// SPDX-License-Identifier: Apache-2.0
// The critical path of a scatter over lanes, and the number of lanes that makes it shortest.
#include "collectives/lanes_model.hpp"

#include <algorithm>

namespace torii {
namespace {

int lanes_most(const LongLink& link) { return std::min(link.root_ranks, link.ranks); }

/// The fewest lanes with which a site is done within `time_s`; 0 where none are enough.
int fewest_lanes(const LongLink& link, double time_s, bool forwards) {
  for (int lanes = 1; lanes <= lanes_most(link); ++lanes) {
    if (lanes_time_s(link, lanes, forwards) <= time_s) return lanes;
  }
  return 0;
}

/// Empty where the root's site cannot do it.
std::vector<LaneChoice> within(std::span<const LongLink> links, double time_s, double root_capacity, bool forwards) {
  std::vector<LaneChoice> choices;
  int lanes_sum = 0;
  double rate_sum = 0;
  for (const LongLink& link : links) {
    const int lanes = fewest_lanes(link, time_s, forwards);
    if (lanes == 0) return {};
    lanes_sum += lanes;
    rate_sum += lanes * stream_rate(link, lanes);
    choices.push_back({lanes, lanes_time_s(link, lanes, forwards)});
  }
  const bool fits = lanes_sum <= links.front().root_ranks && rate_sum <= root_capacity * (1 + 1e-9);
  return fits ? choices : std::vector<LaneChoice>{};
}

}  // namespace

double stream_rate(const LongLink& link, int lanes) {
  if (lanes <= static_cast<int>(link.rates.size())) return link.rates[static_cast<std::size_t>(lanes - 1)];
  const double share = link.capacity / lanes;
  return link.latency_s > 0 ? std::min(link.window_bytes / (2 * link.latency_s), share) : share;
}

std::vector<int> lane_shares(int messages, int lanes) {
  std::vector<int> shares;
  for (int lane = 0; lane < lanes; ++lane) shares.push_back(messages / lanes + (lane < messages % lanes ? 1 : 0));
  return shares;
}

double lanes_time_s(const LongLink& link, int lanes, bool forwards) {
  const double inside_s = link.bytes / link.site_rate;
  const double across_s = link.bytes / stream_rate(link, lanes);
  const double own_site_s = (link.root_ranks - 1) * inside_s;
  const std::vector<int> shares = lane_shares(link.ranks, lanes);
  if (forwards) {
    const double last_lane_s = (lanes - 1) * inside_s + link.latency_s + shares.front() * across_s + inside_s;
    return std::max(own_site_s, last_lane_s);
  }
  double longest_s = own_site_s;
  double handed_s = 0;  // the root keeps its own share
  for (std::size_t lane = 0; lane < shares.size(); ++lane) {
    if (lane != 0) handed_s += shares[lane] * inside_s;
    longest_s = std::max(longest_s, handed_s + link.latency_s + shares[lane] * (across_s + inside_s));
  }
  return longest_s;
}

LaneChoice choose_lanes(const LongLink& link, bool forwards) {
  LaneChoice best = {1, lanes_time_s(link, 1, forwards)};
  for (int lanes = 2; lanes <= lanes_most(link); ++lanes) {
    const double time_s = lanes_time_s(link, lanes, forwards);
    if (time_s < best.time_s * (1 - 1e-9)) best = {lanes, time_s};
  }
  return best;
}

std::vector<LaneChoice> choose_lanes(std::span<const LongLink> links, double root_capacity, bool forwards) {
  if (links.empty()) return {};
  double low_s = 0;
  double high_s = 0;
  for (const LongLink& link : links) {
    low_s = std::max(low_s, choose_lanes(link, forwards).time_s);
    high_s = std::max(high_s, lanes_time_s(link, 1, forwards));
  }
  std::vector<LaneChoice> best = within(links, high_s, root_capacity, forwards);
  if (best.empty()) return best;
  for (int step = 0; step < 60; ++step) {
    const double middle_s = (low_s + high_s) / 2;
    std::vector<LaneChoice> choices = within(links, middle_s, root_capacity, forwards);
    (choices.empty() ? low_s : high_s) = middle_s;
    if (!choices.empty()) best = std::move(choices);
  }
  return best;
}

}  // namespace torii
