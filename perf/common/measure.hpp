// SPDX-License-Identifier: Apache-2.0
// Timing of one collective call, of torii or of an MPI: the same barrier, the same stamps, the same statistics.
#pragma once

#include <torii/torii.h>

#include <cstdint>
#include <span>
#include <vector>

#include "perf/common/meeting.hpp"
#include "perf/common/options.hpp"

namespace torii::perf {

/// What is timed. `prepare` gives the rank fresh input before an isolated call (call number `i`) and is not timed.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual void prepare(int i) = 0;
  virtual torii_status call() = 0;
  /// After a call and before the ranks meet by other means, not timed: what a rank that has left the call still owes to
  /// others gets there.
  virtual void settle() {}
};

/// Blocks of calls; the median over blocks is what is reported.
inline constexpr int kBlocks = 5;

/// Collective. Durations in ns, equal on all ranks: isolated gives one per call, from the last rank's start to the last
/// rank's end; loop gives the mean of the whole block. `early_ends` counts calls that some rank left before the last
/// one had come, which is wrong for a barrier.
struct Block {
  std::vector<double> durations_ns;
  int64_t early_ends = 0;
};
Block run_block(const Job& job, Meeting& meeting, Timing timing, int calls, Subject& subject);

/// How long one block should take when the number of calls is not given.
inline constexpr double kBlockNs = 20e6;

/// Collective. Makes one call and then `warm_up_calls` more and returns how many calls fit into one block: from 3 to
/// 1000 by their time, equal on all ranks.
int warm_up(const Job& job, Meeting& meeting, Timing timing, int warm_up_calls, double block_ns, Subject& subject);

/// The mean of the two in the middle where the number is even; 0 of none.
double median(std::vector<double> values);

struct Statistics {
  double median_us = 0;  ///< over blocks, of each block's median
  double mad_us = 0;     ///< median absolute deviation of the blocks
  double p50_us = 0;     ///< over all calls (loop: over blocks), as p99 and max
  double p99_us = 0;
  double max_us = 0;
  int calls = 0;
};
Statistics summarise(std::span<const std::vector<double>> blocks_ns);

/// What nccl-tests multiplies algbw by to get the traffic of the busiest link.
double busbw_factor(torii_collective collective, int ranks);

}  // namespace torii::perf
