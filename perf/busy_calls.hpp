// SPDX-License-Identifier: Apache-2.0
// Calls in a row on ranks that share their CPUs with foreign processes: how long each takes, and where the ranks were
// in the slow ones.
#pragma once

#include <cstdint>
#include <string>

#include "perf/common/job.hpp"
#include "perf/common/program.hpp"

namespace torii::perf {

struct BusyOptions {
  double seconds = 2;
  int slow_us = 100;  ///< a call that takes longer is slow
  std::string kind = "allreduce";
  std::string cpus;     ///< empty, or a CPU for each rank
  std::string setting;  ///< what to call the way in the report
  std::string json;
};

/// The flags of both programs, for torii and for an MPI.
void add_busy_flags(const CommandLine& app, BusyOptions& options, const std::vector<std::string>& kinds);
/// Binds this process to the CPU that the flags name for its rank. Before it joins, so that the library knows. Throws
/// Failure.
void bind_rank(const BusyOptions& options, int rank, int ranks);

/// One call of 8 bytes among all ranks.
class BusyCall {
 public:
  virtual ~BusyCall() = default;
  /// Every rank gets something other than 0 if rank 0 gave that.
  virtual int64_t run(int64_t mine) = 0;
  /// How often the library has moved this thread to another CPU; -1: it does not say.
  virtual int64_t hops() const { return -1; }
};

/// Collective. Makes calls for so long, and prints and saves on rank 0 what they took.
void measure_busy(const Job& job, const BusyOptions& options, BusyCall& call);

}  // namespace torii::perf
