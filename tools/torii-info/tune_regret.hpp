// SPDX-License-Identifier: Apache-2.0
// The verdict of `torii-info tune --check`.
#pragma once

#include <string>
#include <vector>

#include "tools/torii-info/tune_lines.hpp"

namespace torii::tools {

/// Regret of a cell: the time of what `auto` selects over the time of the best forced algorithm, at least 1. A table is
/// good if the median over cells and the worst cell are at most these.
inline constexpr double kRegretMedianMax = 1.03;
inline constexpr double kRegretWorstMax = 1.15;

struct RegretRun {
  std::string table;  ///< "the built-in table", or its file
  std::size_t cells = 0;
  int passes = 3;
};

/// Every cell, and the median and the worst regret. Exit code 1 if one of them is above its limit; otherwise 4 if cells
/// or passes are missing.
Report report_regret(const RegretRun& run, const std::vector<TuneLine>& lines);

}  // namespace torii::tools
