// SPDX-License-Identifier: Apache-2.0
// How many streams between sites a collective should use, by a cost model of long links.
#pragma once

#include <span>
#include <vector>

namespace torii {

/// A long link between the root's site and another one, and what a rank of that site is to receive. Times in seconds,
/// rates in bytes per second.
struct LongLink {
  int root_ranks = 1;              ///< of the root's site, the root among them
  int ranks = 1;                   ///< of the other site
  double bytes = 0;                ///< per rank
  double latency_s = 0;            ///< one way
  double window_bytes = 0;         ///< what one stream may have under way
  double capacity = 0;             ///< of the link
  double site_rate = 0;            ///< between two ranks of one site
  std::vector<double> rates = {};  ///< rates[p - 1]: of each of p streams, measured; where it ends the model goes on
  double segment_bytes = 0;        ///< in which blocks travel; 0: whole
};

/// The rate of each of `lanes` streams at once: as measured, or min(window / round trip, capacity / lanes).
double stream_rate(const LongLink& link, int lanes);

/// The rate of the full link: the given capacity. If the last stream was still as fast as the first, the link was not
/// full and its capacity is unknown. Then twice the measured rate of all streams together, if that is more.
double full_rate(const LongLink& link);

/// How long `bytes` bytes take over one of `lanes` streams that are warm and idle. The first window leaves at the rate
/// of the link, and each later window a round trip after the one before. On average a stream is half a window ahead of
/// its rate. Streams that fill the link, and messages within a window, take the latency and the link's rate.
double crossing_s(const LongLink& link, int lanes, double bytes);

/// The time of a scatter from the root over `lanes` lanes (1 to the ranks of the smaller site), in segments. So handing
/// out, crossing and handing on overlap, and streams start a window ahead. A gather takes the same, run backwards.
/// After the model of Chiba, Endo and Matsuoka (docs/algorithms/multilane.md, "Source").
double lanes_time_s(const LongLink& link, int lanes);

/// The time of a broadcast of `bytes` bytes (not those of the link) from the root over `lanes` lanes. The root hands
/// each head of its site a share, and heads hand theirs to all ranks of their sites. A reduce takes the same, run
/// backwards. `others`: sites beside the root's, to all of which the root's heads send.
double spread_time_s(const LongLink& link, int lanes, double bytes, int others);

/// The time of an allreduce: shares are gathered at the heads, cross, are combined, and go back the same ways,
/// segment by segment.
double allreduce_time_s(const LongLink& link, int lanes, double bytes, int others);

/// The time of an alltoall for the ranks of one site. Each rank has at most `in_flight` messages under way, over a
/// stream for each. `links` lead from the site to the other sites, and together have the capacity of the site. A
/// message is under way until its credit is back, so it takes a latency more than its way.
double alltoall_time_s(std::span<const LongLink> links, int in_flight);

struct LaneChoice {
  int lanes = 1;
  double time_s = 0;
};
/// The least time over all numbers of lanes, the fewest lanes among equals.
LaneChoice choose_lanes(const LongLink& link);

/// For several sites at once: lanes for each, so that all are done in the least time and the sums fit the root's site.
/// They fit if there are no more lanes than that site has ranks, and if they need no more than `root_capacity`
/// together. By bisection of the time. Empty where one lane for each site is too many already.
std::vector<LaneChoice> choose_lanes(std::span<const LongLink> links, double root_capacity);

}  // namespace torii
