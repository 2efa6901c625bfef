// SPDX-License-Identifier: Apache-2.0
// torii-info phases: lower bounds on the number of phases of a redistribution of items, and the number that floyd uses.
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
