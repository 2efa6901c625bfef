// SPDX-License-Identifier: Apache-2.0
// Counts resources that this program has taken of its machine.
#pragma once

namespace torii::tools {

/// Since the program began.
struct Spending {
  double cpu_s = 0;       ///< of all processors
  double memory_MiB = 0;  ///< the most at one time
};

Spending spending();

}  // namespace torii::tools
