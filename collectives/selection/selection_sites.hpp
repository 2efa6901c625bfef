// SPDX-License-Identifier: Apache-2.0
// How a collective between sites is carried, where no tune table knows: what the model of lanes says.
#pragma once

#include <span>
#include <string>

#include "collectives/selection/lanes_model.hpp"
#include "collectives/selection/selection.hpp"

namespace torii {

/// Whether multilane is to serve this call by the model of lanes: a scatter or gather of long blocks, or a
/// long allreduce, where it takes less than if every rank exchanged its vector with one beyond the link, as
/// recursive_doubling does. Blocks of unequal lengths (`bytes` SIZE_MAX) are taken for long ones.
bool asks_lanes_model(const PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams);

/// Whether a broadcast or reduce takes less over lanes, by 5 %, than by the choice between scheduled and chain, which
/// takes `tree_time_s` by the links' bandwidths, or as long as one stream needs across.
bool lanes_beat_tree(const PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams,
                     double tree_time_s);

/// The tuning with which multilane moves a vector of `bytes` bytes; lanes are left to choose_lanes().
Tuning multilane_tuning(const PlanRequest& request, std::size_t bytes);

/// The long links of a call, by site; that of the root's own site has no ranks. Rates come from `streams`, those of
/// the way back where only they are known; where nothing was measured a stream is taken for one with 64 KiB under way.
std::vector<LongLink> long_links(const PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams);

/// Fills in the lanes, by the model unless the request's tuning gives them; of an alltoall the window, of which lanes
/// that are given leave what the tuning has. Returns why, with the model's time.
std::string choose_lanes(PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams);

}  // namespace torii
