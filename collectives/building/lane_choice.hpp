// SPDX-License-Identifier: Apache-2.0
// How many lanes a collective between sites takes, and its time: the model of lanes on the long links of a tree.
#pragma once

#include "collectives/building/algorithm.hpp"

namespace torii {

/// The tree of links as the payload goes: of a reduce every link has its directions exchanged.
TreeTopology directed_tree(const PlanRequest& request);

/// The time for which the long links of a tree are busy if at most `streams_most` ranks of a site send the whole vector
/// at once. Each of them sends to a rank of its own beyond the link. 0 without long links.
double streams_time_s(const EstimateRequest& request, int streams_most);

/// The bytes of one rank's block. When lanes are chosen, blocks of unequal lengths are known only to their own ends, so
/// they count as long. Too many streams for short blocks cost less than too few streams for long ones.
std::size_t block_bytes(const EstimateRequest& request);

/// The tuning with which vectors or blocks move over lanes; the number of lanes is open.
Tuning lanes_tuning(const EstimateRequest& request);

/// The tuning of the request with the number of lanes, by the model unless the number is given. For an alltoall with
/// the window, unless lanes are given. With the model's time.
CostEstimate estimate_lanes(const EstimateRequest& request);

}  // namespace torii
