// SPDX-License-Identifier: Apache-2.0
// One point of a tuning run: all candidates for one collective and length, in alternating blocks, then a final.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perf/common/alternate.hpp"
#include "perf/common/job.hpp"
#include "perf/common/meeting.hpp"
#include "perf/tuning/candidates.hpp"

namespace torii::perf {

/// With what the choice of the table in force is compared.
enum class Rivals : uint8_t {
  tunings,     ///< every algorithm with every tuning of candidates()
  algorithms,  ///< every other algorithm, forced: with the tuning of the table's first row for it, or its own estimate
  table,       ///< the choice of another table
};

struct PointRequest {
  torii_collective collective = TORII_ALLREDUCE;
  size_t bytes = 0;
  Rivals rivals = Rivals::tunings;
  std::vector<std::string> algorithms;  ///< not for Rivals::table
  std::string table;                    ///< the other one as JSON text, for Rivals::table
  int rounds = 7;                       ///< of the search, and of the final; at most
  Timing timing = Timing::isolated;
  double block_ns = 2e6;  ///< of one block of one candidate on one kind of memory
};

/// Figures of one candidate. `ratio` to the choice of the table: the median over the rounds of the time of this
/// candidate over the table's in the same round, per kind of memory; of both kinds the geometric mean, since a row
/// serves both. Below 1 is faster than the table. A barrier has no memory and is measured once.
struct Measured {
  Choice choice;                           ///< slots, window and one_shot are known for Rivals::tunings only
  double malloc_us = 0, allocated_us = 0;  ///< medians over the rounds
  double ratio = 1;
  double spread = 0;  ///< median deviation of the rounds' ratios, relative to `ratio`
  int rounds = 0;     ///< fewer than others: dropped as a clear loser
};

struct PointResult {
  size_t bytes = 0;                  ///< rounded to whole elements of every block
  Measured table;                    ///< the choice of the table in force
  std::vector<Measured> candidates;  ///< those with fewer than `rounds` rounds are out
  int rounds = 0;                    ///< of the search; 0: not even one was done before the deadline
  /// The best candidate in a final of new rounds beside the table's choice alone. A search takes the best of many
  /// candidates, which flatters that one; the final does not. None if no candidate beat the table in the search.
  std::optional<Measured> best;
};

/// Collective. `budget` has begun the point. The settings of `job` name the table in force.
PointResult measure_point(Job& job, Meeting& meeting, Budget& budget, const PointRequest& request);

}  // namespace torii::perf
