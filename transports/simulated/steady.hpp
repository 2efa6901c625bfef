// SPDX-License-Identifier: Apache-2.0
// Long pipelines: once the progress of all ranks is periodic, the rest of the segments takes as long as their number
// says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transports/simulated/run.hpp"

namespace torii::simulated {

/// How the time of the segments that were left out is known.
enum class Steady : std::uint8_t {
  none,      ///< nothing was left out
  periodic,  ///< exactly: all ranks repeat themselves, the call takes what it would have taken
  mean,      ///< all ranks go at one pace, around which they sway: within 1 % where the whole call was run as well
};

struct SteadyOutcome {
  Outcome outcome;                ///< of the whole call; without results and uses when segments were left out
  std::int64_t segments_run = 0;  ///< all of them, or those of the shorter call that was run
  Steady steady = Steady::none;
};

/// Runs a call of `bytes` bytes. One of more than twice `segments_least` segments is run as a shorter one that lacks
/// whole segments in the middle, if that is steady in its third quarter: periodic, or at a pace that is equal on all
/// ranks; else a longer one is tried, at last the whole call. Engines that more streams share than there are engines
/// make ranks sway, since which of them is served first depends on the others. Calls with data or jitter are run as
/// they are.
SteadyOutcome run_steady(Call call, std::size_t bytes, std::int64_t segments_least = 512);

}  // namespace torii::simulated
