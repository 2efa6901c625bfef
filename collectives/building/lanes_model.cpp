// SPDX-License-Identifier: Apache-2.0
// The critical paths of collectives over lanes, and the number of lanes that makes them shortest.
#include "collectives/building/lanes_model.hpp"

#include <algorithm>

#include "runtime/base/tuned_constants.hpp"

namespace torii {
namespace {

int lanes_most(const LongLink& link) { return std::min(link.root_ranks, link.ranks); }

/// The fewest lanes with which a site is done within `time_s`; 0 where none are enough.
int fewest_lanes(const LongLink& link, double time_s) {
  for (int lanes = 1; lanes <= lanes_most(link); ++lanes) {
    if (lanes_time_s(link, lanes) <= time_s) return lanes;
  }
  return 0;
}

/// Empty where the root's site cannot do it.
std::vector<LaneChoice> within(std::span<const LongLink> links, double time_s, double root_capacity) {
  std::vector<LaneChoice> choices;
  int lanes_sum = 0;
  double rate_sum = 0;
  for (const LongLink& link : links) {
    const int lanes = fewest_lanes(link, time_s);
    if (lanes == 0) return {};
    lanes_sum += lanes;
    rate_sum += lanes * stream_rate(link, lanes);
    choices.push_back({lanes, lanes_time_s(link, lanes)});
  }
  const bool fits = lanes_sum <= links.front().root_ranks && rate_sum <= root_capacity * (1 + 1e-9);
  return fits ? choices : std::vector<LaneChoice>{};
}

double piece_bytes(const LongLink& link, double bytes) {
  return link.segment_bytes > 0 ? std::min(link.segment_bytes, bytes) : bytes;
}

/// The time of the busiest cable while shares go from heads to all ranks. It is the cable of the root, of a head at the
/// other site, or of a rank there, which receives the whole vector. The root is head of its part of the shares and
/// sends the others to their heads.
double spread_inside_s(const LongLink& link, int lanes, double bytes, int others) {
  const double share_s = bytes / lanes / link.site_rate;
  const int own = (lanes + link.root_ranks - 1) / link.root_ranks;
  const double root_s = share_s * (own * (link.root_ranks - 1 + others) + lanes - own);
  const int theirs = (lanes + link.ranks - 1) / link.ranks;
  return std::max({root_s, share_s * theirs * (link.ranks - 1), bytes / link.site_rate});
}

}  // namespace

double stream_rate(const LongLink& link, int lanes) {
  if (lanes <= static_cast<int>(link.rates.size())) return link.rates[static_cast<std::size_t>(lanes - 1)];
  const double share = link.capacity / lanes;
  return link.latency_s > 0 ? std::min(link.window_bytes / (2 * link.latency_s), share) : share;
}

double full_rate(const LongLink& link) {
  constexpr auto kAsFast = tuned<double>("lanes.as_fast");
  constexpr auto kWider = tuned<double>("lanes.wider");
  if (link.rates.size() < 2 || link.rates.back() < kAsFast * link.rates.front()) return link.capacity;
  return std::max(link.capacity, kWider * static_cast<double>(link.rates.size()) * link.rates.back());
}

double crossing_s(const LongLink& link, int lanes, double bytes) {
  const double rate = stream_rate(link, lanes);
  const double line_rate = std::max(rate, full_rate(link) / lanes);
  return std::max(link.latency_s + bytes / line_rate, bytes / rate + link.latency_s * rate / line_rate);
}

/// Everything leaves by the root's one cable; lanes are served in turn, a segment each.
double lanes_time_s(const LongLink& link, int lanes) {
  const double inside_s = link.bytes / link.site_rate;
  const double piece_s = piece_bytes(link, link.bytes) / link.site_rate;
  const double all_s = (link.ranks + link.root_ranks - 1) * inside_s;
  const double all_across_s = link.ranks * inside_s + link.latency_s + piece_s;
  // Lanes with one block more than others carry it when the others are done, and then fewer lanes share the link.
  const int more = link.ranks % lanes;
  const double last_block_s = more == 0 ? 0 : link.bytes / stream_rate(link, more);
  const double share_s = crossing_s(link, lanes, link.ranks / lanes * link.bytes) + last_block_s;
  const double last_lane_s = (lanes - 1) * piece_s + share_s + piece_s;
  return std::max({all_s, all_across_s, last_lane_s});
}

double spread_time_s(const LongLink& link, int lanes, double bytes, int others) {
  const double share_bytes = bytes / lanes;
  const double piece_s = piece_bytes(link, share_bytes) / link.site_rate;
  const double inside_s = spread_inside_s(link, lanes, bytes, others) + link.latency_s;
  return std::max(inside_s, crossing_s(link, lanes, share_bytes)) + 2 * piece_s;
}

double allreduce_time_s(const LongLink& link, int lanes, double bytes, int others) {
  // Up and down are lanes of their own, and cables and links go both ways at once: the last segment's way back is
  // added.
  const double piece_s = piece_bytes(link, bytes / lanes) / link.site_rate;
  return spread_time_s(link, lanes, bytes, others) + link.latency_s + 2 * piece_s;
}

double alltoall_time_s(std::span<const LongLink> links, int in_flight) {
  double latency_s = 0;
  double capacity = 0;
  double bytes = 0;
  double turns_s = 0;
  for (const LongLink& link : links) {
    const int turns = (link.ranks + in_flight - 1) / in_flight;
    turns_s += turns * (crossing_s(link, link.root_ranks * in_flight, link.bytes) + link.latency_s);
    bytes += link.root_ranks * link.ranks * link.bytes;
    capacity = std::max(capacity, link.capacity);
    latency_s = std::max(latency_s, link.latency_s);
  }
  return std::max(latency_s + bytes / capacity, turns_s);
}

LaneChoice choose_lanes(const LongLink& link) {
  LaneChoice best = {1, lanes_time_s(link, 1)};
  for (int lanes = 2; lanes <= lanes_most(link); ++lanes) {
    const double time_s = lanes_time_s(link, lanes);
    if (time_s < best.time_s * (1 - 1e-9)) best = {lanes, time_s};
  }
  return best;
}

std::vector<LaneChoice> choose_lanes(std::span<const LongLink> links, double root_capacity) {
  if (links.empty()) return {};
  double low_s = 0;
  double high_s = 0;
  for (const LongLink& link : links) {
    low_s = std::max(low_s, choose_lanes(link).time_s);
    high_s = std::max(high_s, lanes_time_s(link, 1));
  }
  std::vector<LaneChoice> best = within(links, high_s, root_capacity);
  if (best.empty()) return best;
  for (int step = 0; step < 60; ++step) {
    const double middle_s = (low_s + high_s) / 2;
    std::vector<LaneChoice> choices = within(links, middle_s, root_capacity);
    (choices.empty() ? low_s : high_s) = middle_s;
    if (!choices.empty()) best = std::move(choices);
  }
  return best;
}

}  // namespace torii
