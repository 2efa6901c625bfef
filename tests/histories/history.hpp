// SPDX-License-Identifier: Apache-2.0
// A history: what each rank does, one step after the other. A function of a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/torii-sim/faults/calls.hpp"

namespace torii::tests {

using faults::CallSpec;
using faults::expected_result;
using faults::input_bytes;
using faults::input_of;
using faults::kRefusals;
using faults::make_refused_call;
using faults::random_call;
using faults::result_bytes;
using faults::unlike;

/// What one rank does at a step instead of the call.
enum class Deviation : std::uint8_t {
  none,
  refused,  ///< makes a call that is refused
  differs,  ///< makes Step::other
  aborts    ///< aborts the team, then makes the call
};

enum class Manner : std::uint8_t {
  blocking,
  started,    ///< waited for a few steps later
  persistent  ///< prepared, started and waited for twice
};

struct Step {
  std::size_t team = 0;  ///< 0: all ranks; otherwise a part, which step 0.. of the history made
  bool splits = false;   ///< makes part number `part` of team 0, by colours
  std::size_t part = 0;
  std::uint64_t colors = 0;  ///< bit r: the colour of rank r
  Manner manner = Manner::blocking;
  CallSpec call;
  CallSpec other;
  std::vector<Deviation> deviations;  ///< by rank of team 0
  std::vector<int> pauses_us;         ///< by rank, before the step
  bool in_arena = false;              ///< vectors are memory of the context
};

struct History {
  std::uint64_t seed = 0;
  int ranks = 2;
  std::size_t teams = 1;
  std::vector<Step> steps;

  /// Whether calls of the rank's team at that index may fail: a rank deviates from the others there.
  bool may_fail(std::size_t team, int rank) const;
  /// Ranks that are in one team with `rank`.
  std::vector<int> members(std::size_t team, int rank) const;
};

/// The team of all ranks is split at most `parts_most` times.
History random_history(std::uint64_t seed, int ranks, int parts_most);
/// "step 3: team 0, started allreduce of 7 x type 4; rank 1 is refused".
std::string text_of(const History& history);

}  // namespace torii::tests
