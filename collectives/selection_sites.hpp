// SPDX-License-Identifier: Apache-2.0
// How a scatter or gather between sites is carried, where no tune table knows: what the model of lanes says.
#pragma once

#include <span>
#include <string>

#include "collectives/lanes_model.hpp"
#include "collectives/selection.hpp"

namespace torii {

/// Whether the model is asked for this call: multilane serves it, and its blocks are long. Blocks of unequal lengths
/// (`bytes` SIZE_MAX) take the plans of direct.
bool asks_lanes_model(const PlanRequest& request, std::size_t bytes);

/// The tuning with which multilane moves a vector of `bytes` bytes; lanes are left to choose_lanes().
Tuning multilane_tuning(const PlanRequest& request, std::size_t bytes);

/// The long links of a scatter or gather, by site; that of the root's own site has no ranks. Rates come from
/// `streams`, those of the way back where only they are known; where nothing was measured a stream is taken for one
/// with 64 KiB under way.
std::vector<LongLink> long_links(const PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams);

/// Fills in the lanes, by the model unless the request's tuning gives them. Returns why, with the model's time.
std::string choose_lanes(PlanRequest& request, std::size_t bytes, std::span<const StreamRates> streams);

}  // namespace torii
