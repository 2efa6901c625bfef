// SPDX-License-Identifier: Apache-2.0
// How many streams between sites a scatter or gather should use, by a cost model of long links.
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
};

/// Of each of `lanes` streams at once: as measured, or min(window / round trip, capacity / lanes).
double stream_rate(const LongLink& link, int lanes);

/// Messages on each of `lanes` lanes, as even as can be, the root's own lane first and with the largest share.
std::vector<int> lane_shares(int messages, int lanes);

/// The time of a scatter from the root over `lanes` lanes (1 to the ranks of the smaller site): the root hands the
/// other heads their shares one after the other, each lane carries its share across, and the head there hands it on.
/// With `forwards` heads hand on each message as it comes. A gather takes the same, run backwards. The critical path of
/// the algorithm of Chiba, Endo and Matsuoka (docs/algorithms.md, "Lanes between sites").
double lanes_time_s(const LongLink& link, int lanes, bool forwards);

struct LaneChoice {
  int lanes = 1;
  double time_s = 0;
};
/// The least time over all numbers of lanes, the fewest lanes among equals.
LaneChoice choose_lanes(const LongLink& link, bool forwards);

/// For several sites at once: lanes for each, so that all are done in the least time and the sums fit the root's site:
/// no more lanes than it has ranks, and together no more than `root_capacity`. By bisection of the time. Empty where
/// one lane for each site is too many already.
std::vector<LaneChoice> choose_lanes(std::span<const LongLink> links, double root_capacity, bool forwards);

}  // namespace torii
