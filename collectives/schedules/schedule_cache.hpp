// SPDX-License-Identifier: Apache-2.0
// The last few schedules that plans were made of: every rank works out its peers' plans too.
#pragma once

#include <memory>

#include "collectives/schedules/schedule.hpp"

namespace torii {

/// The schedule of a broadcast from `root` of `bytes` bytes on a tree of links, or on one node, whose ranks are taken
/// for a star. `backwards`: on the tree with the directions of all links exchanged, to be run backwards as a reduce.
/// The search is bounded in steps, so that all ranks find the same.
std::shared_ptr<const Schedule> kept_schedule(const Topology& topology, int root, std::size_t bytes, bool backwards);

}  // namespace torii
