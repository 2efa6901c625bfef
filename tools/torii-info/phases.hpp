// SPDX-License-Identifier: Apache-2.0
// torii-info phases: how few phases of communication a redistribution of items can take, and how many floyd takes.
#pragma once

#include <string>

#include "tools/torii-info/report.hpp"

namespace torii::tools {

struct PhasesQuestion {
  int ranks = 4;
  std::string of = "alltoall";  ///< alltoall, transpose:NxM, rotate:ITEMS+SHIFT, shuffle:ITEMS+SEED
};

/// Throws Error{invalid_argument} naming what is wrong with the question.
Report phases(const PhasesQuestion& question);

}  // namespace torii::tools
