// SPDX-License-Identifier: Apache-2.0
// The figures of tune_perf: one line for each cell and pass, and their medians over passes.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectives/selection/tune_table.hpp"
#include "tools/torii-info/report.hpp"

namespace torii::tools {

/// A collective, a number of ranks of one machine, and the bytes of the vector (of all blocks together; barrier: 0).
struct TuneCell {
  Collective collective = Collective::allreduce;
  int ranks = 2;
  std::size_t bytes = 0;
  auto operator<=>(const TuneCell&) const = default;
};

/// "allreduce, 4 ranks, 64K".
std::string to_text(const TuneCell& cell);

/// One cell of one pass.
struct TuneLine {
  TuneCell cell;
  std::string algorithm;                   ///< the choice of the table in force
  std::size_t segment_bytes = 0;           ///< of this choice
  double malloc_us = 0, allocated_us = 0;  ///< its times, by kind of memory
  std::string rival;                       ///< the best other choice; empty if there was none to compare with
  TuneRow rival_row;                       ///< its algorithm and tuning; the tuning is known if tunings were compared
  double ratio = 1;                        ///< time of the rival over that of the choice; below 1 is faster
  bool is_decided = false;                 ///< there was a rival, and time for a final if it was faster
};

/// Throws Error{internal} for a line that tune_perf does not write.
TuneLine parse_tune_line(const Json& json);

/// A cell over all passes.
struct TuneFigure {
  TuneLine line;  ///< that of the pass in the middle, with the median ratio
  int passes = 0;
};

/// By cell.
std::map<TuneCell, TuneFigure> medians(const std::vector<TuneLine>& lines);

/// The mean of the two in the middle if there is an even number; 1 of none.
double median_of(std::vector<double> values);

}  // namespace torii::tools
