// SPDX-License-Identifier: Apache-2.0
// The drawer: plans as text for reading and as SVG for looking at.
#pragma once

#include <span>
#include <string>

#include "runtime/plan/plan.hpp"

namespace torii {

/// A heading with what all ranks share, then each given rank's lanes, one line per flow:
/// "up tree 0: own + child 3 + child 7 -> parent 1, block 0".
std::string draw_text(const PlanRequest& request, std::span<const Plan> plans);
/// The same for one rank.
std::string draw_text(const PlanRequest& request, const Plan& plan);

/// Most ranks that draw_svg() takes: beyond, arrows cover each other.
inline constexpr int kRanksDrawnMost = 256;

/// A self-contained SVG document. Ranks are on the grid of their topology (layers of z behind each other; a node as a
/// circle). Each stream is an arrow, coloured by the block it carries and dashed by the kind of flow that feeds it. The
/// document has a title and a legend. `plans` holds all ranks in order. Throws Error{invalid_argument} for more than
/// kRanksDrawnMost or missing plans.
std::string draw_svg(const PlanRequest& request, std::span<const Plan> plans);

}  // namespace torii
