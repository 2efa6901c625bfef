// SPDX-License-Identifier: Apache-2.0
// The comparison's best rows, and their drawing as SVG.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace torii::perf {

/// Per (collective, timing, ranks, bytes): the setting with the least MPI time and the figures of that process.
struct BestRow {
  std::string collective, timing, mpi, setting, algorithm;
  int ranks = 0;
  size_t bytes = 0;
  double mpi_us = 0, torii_malloc_us = 0, torii_allocated_us = 0;
  double torii_adopted_us = 0;  ///< 0: not measured, in results of before there was adopting
  double ratio_malloc = 0, ratio_allocated = 0, ratio_adopted = 0;
  double limit_private_us = 0, limit_mapped_us = 0;  ///< 0: no loop for this call, or results of before there were any

  /// Vectors that others map can be copied through slots too, which is faster for few bytes and many ranks. Between
  /// nodes all vectors have one limit.
  double mapped_limit_us() const {
    return limit_mapped_us > 0 ? std::min(limit_private_us, limit_mapped_us) : limit_private_us;
  }
};

/// One panel per collective and number of ranks, time over size, both logarithmic. Isolated timing only where both
/// timings are there. `title` stands above.
std::string draw_times(const std::string& title, const std::vector<BestRow>& rows);
/// The same with every time divided by the limit's: that of malloc'ed vectors for MPI and torii's malloc'ed ones, that
/// of mapped vectors for torii's other two.
std::string draw_ratios(const std::string& title, const std::vector<BestRow>& rows);

}  // namespace torii::perf
