// SPDX-License-Identifier: Apache-2.0
// One cell of the comparison: MPI's collective and torii's in alternating blocks of one process.
#pragma once

#include <cstdint>
#include <string>

#include "perf/common/job.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/meeting.hpp"

namespace torii::perf {

struct CellRequest {
  torii_collective collective = TORII_ALLREDUCE;
  Timing timing = Timing::isolated;
  size_t bytes = 0;
  double block_ns = kBlockNs;
};

/// Four ways of the same call. MPI and torii_malloc use the same malloc'ed vectors; those of torii_adopted are
/// malloc'ed too, and registered once before anything is timed.
struct CellResult {
  Statistics mpi, torii_malloc, torii_allocated, torii_adopted;
  int64_t wrong_mpi = 0;  ///< outside the rounding that any order of summing allows
  int64_t wrong_torii = 0;
  size_t bytes = 0;
  std::string algorithm;
  size_t segment_bytes = 0;
  int engines = 0;
};

/// Collective. f32, sum, root 0.
CellResult compare_cell(Job& job, Meeting& meeting, const CellRequest& request);

}  // namespace torii::perf
