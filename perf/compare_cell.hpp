// SPDX-License-Identifier: Apache-2.0
// One cell of the comparison: MPI's collective and torii's in alternating blocks of one process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "perf/common/job.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/meeting.hpp"
#include "perf/limits/area.hpp"
#include "perf/limits/sockets.hpp"

namespace torii::perf {

struct CellRequest {
  torii_collective collective = TORII_ALLREDUCE;
  Timing timing = Timing::isolated;
  size_t bytes = 0;
  double block_ns = kBlockNs;
};

/// The fastest hand-written loop (perf/limits). Without a name there is none: this collective, or this machine, has no
/// loop for the call.
struct Limit {
  Statistics time;
  std::string name;
};

/// The ways of the same call. MPI, torii_malloc and limit_private use the same malloc'ed vectors; those of
/// torii_adopted are malloc'ed too, and registered once before anything is timed; those of limit_mapped are mapped by
/// all ranks.
struct CellResult {
  Statistics mpi, torii_malloc, torii_allocated, torii_adopted;
  Limit limit_private, limit_mapped;
  int64_t wrong_mpi = 0;  ///< outside the rounding that any order of summing allows
  int64_t wrong_torii = 0;
  int64_t wrong_limits = 0;
  size_t bytes = 0;
  std::string algorithm;
  size_t segment_bytes = 0;
  int engines = 0;
};

/// The means of the hand-written loops: memory that the ranks of one host share, or connections between hosts.
struct LimitMeans {
  explicit LimitMeans(const Job& job);

  Area area;
  std::optional<Sockets> sockets;
};

/// Collective. f32, sum, root 0. Nothing is said of limits where ranks of one host cannot share memory; between hosts
/// there is none for vectors that all ranks map.
CellResult compare_cell(Job& job, Meeting& meeting, LimitMeans& means, const CellRequest& request);

}  // namespace torii::perf
