// SPDX-License-Identifier: Apache-2.0
// Long pipelines: once the progress of all ranks is periodic, the number of the remaining segments gives their time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/simulation/run.hpp"

namespace torii::simulated {

/// How the time of the left-out segments is known.
enum class Steady : std::uint8_t {
  none,      ///< nothing was left out
  periodic,  ///< exact: all ranks repeat themselves, and the time is that of the full call
  mean,      ///< all ranks sway around one pace: within 1 % of the full call
};

struct SteadyOutcome {
  Outcome outcome;                ///< of the whole call; without results and uses if segments were left out
  std::int64_t segments_run = 0;  ///< all segments, or those of the shorter call
  Steady steady = Steady::none;
};

/// Runs a call of `bytes` bytes. A call of more than twice `segments_least` segments is run as a shorter one that lacks
/// whole segments in the middle. The shorter one must be steady in its third quarter: periodic, or at a pace that is
/// equal on all ranks. Otherwise a longer one is tried, at last the whole call. Ranks sway if more streams share the
/// engines than there are engines, since which stream is served first depends on the others. Calls with data or jitter
/// are run as they are.
SteadyOutcome run_steady(const Call& call, std::size_t bytes, std::int64_t segments_least = 512);

}  // namespace torii::simulated
