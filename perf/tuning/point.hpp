// SPDX-License-Identifier: Apache-2.0
// One point of a tuning run: all candidates for one collective and length, in alternating blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/common/alternate.hpp"
#include "perf/common/job.hpp"
#include "perf/common/meeting.hpp"
#include "perf/tuning/candidates.hpp"

namespace torii::perf {

struct PointRequest {
  torii_collective collective = TORII_ALLREDUCE;
  size_t bytes = 0;
  std::vector<std::string> algorithms;
  int rounds = 7;         ///< at most
  double block_ns = 2e6;  ///< of one block of one candidate on one kind of memory
};

/// Figures of one candidate. `ratio` to the choice of the table: the median over the rounds of the time of this
/// candidate over the table's in the same round, per kind of memory; of both kinds the geometric mean, since a row
/// serves both. Below 1 is faster than the table. A barrier has no memory and is measured once.
struct Measured {
  Choice choice;
  double malloc_us = 0, allocated_us = 0;  ///< medians over the rounds
  double ratio = 1;
  double spread = 0;  ///< median deviation of the rounds' ratios, relative to `ratio`
  int rounds = 0;     ///< fewer than others: dropped as a clear loser
};

struct PointResult {
  size_t bytes = 0;                  ///< rounded to whole elements of every block
  Measured table;                    ///< what the job's tune table chooses; slots, window and one_shot are not known
  std::vector<Measured> candidates;  ///< those with fewer than `rounds` rounds are out
  int rounds = 0;                    ///< of all passes; 0: not even one was done before the deadline
  int passes = 1;
};

/// Collective. `budget` has begun the point. `job.team()` chooses by the table that is compared.
PointResult measure_point(Job& job, Meeting& meeting, Budget& budget, const PointRequest& request);

}  // namespace torii::perf
