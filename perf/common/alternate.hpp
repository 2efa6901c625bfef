// SPDX-License-Identifier: Apache-2.0
// Several ways of making one call, timed in turn: a machine that changes its speed in mid-run changes it for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "perf/common/buffers.hpp"
#include "perf/common/measure.hpp"

namespace torii::perf {

/// A team and the vectors on which it makes the call. All ways of a comparison make the same call.
class Way : public Subject {
 public:
  Way(torii_team* team, CallData& data) : team_(team), data_(data) {}
  void prepare(int i) override { data_.refresh(i); }
  torii_status call() override { return torii_run(team_, &data_.call()); }

  int calls = 0;                  ///< in one block; 0: not known yet
  std::vector<double> blocks_us;  ///< the median of every block so far

 private:
  torii_team* team_;
  CallData& data_;
};

/// Collective. Times one block and appends its median (in a row: its mean), which is equal on all ranks. Before the
/// first block a few isolated calls make plans, map memory and say how many calls fit into `block_ns` (from 1 to 1000).
void time_block(const Job& job, Meeting& meeting, Timing timing, double block_ns, Way& way);

/// The time of a run, shared out among its points by weight. What a point does not need goes to those after it. Rank
/// 0's clock decides for all, so every question is collective.
class Budget {
 public:
  Budget(const Job& job, double seconds, std::span<const size_t> sizes_bytes);
  /// Begins the next point; false when the whole time is over.
  bool next();
  /// True when this point has had this part of its share: begin no further round.
  bool share_is_over(double part = 1) const {
    return is_past(share_begin_ns_ + static_cast<int64_t>(part * static_cast<double>(share_end_ns_ - share_begin_ns_)));
  }
  bool is_over() const { return is_past(deadline_ns_); }

 private:
  bool is_past(int64_t time_ns) const;

  const Job& job_;
  int64_t deadline_ns_;
  int64_t share_begin_ns_ = 0, share_end_ns_ = 0;
  std::vector<double> weights_;  ///< of all points
  size_t at_ = 0;                ///< the point after the present one
};

}  // namespace torii::perf
