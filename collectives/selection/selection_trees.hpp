// SPDX-License-Identifier: Apache-2.0
// Which algorithm runs a broadcast or reduce on a tree of links, where no tune table knows: what the model says.
#pragma once

#include <string>

#include "collectives/selection/catalogue.hpp"

namespace torii {

/// The tuning with which scheduled moves a vector of `bytes` bytes whole: one segment, rounded up so that vectors of
/// nearly one length share a plan. Beyond 4 MiB the vector goes in segments of that size.
Tuning scheduled_tuning(std::size_t bytes);

/// The tuning with which the model finds chain quickest.
Tuning chain_tuning(const PlanRequest& request, std::size_t bytes);

struct TreeChoice {
  const Algorithm* algorithm = nullptr;  ///< nullptr: none of the two serves the request
  Tuning tuning;
  std::string why;    ///< with the times that the model gives to both
  double time_s = 0;  ///< of the better one
};

/// The better of scheduled and chain for `bytes` bytes, by the times that the tree's bandwidths and latencies give. A
/// function of its arguments: the search for the schedule is bounded in steps.
TreeChoice choose_on_tree(const PlanRequest& request, std::size_t bytes);

}  // namespace torii
