// SPDX-License-Identifier: Apache-2.0
// Times several put loops in turn, size by size, and checks what arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "perf/transports/put_loop.hpp"
#include "perf/transports/put_perf.hpp"
#include "runtime/bootstrap/bootstrap.hpp"

namespace torii::perf {

struct PutPlan {
  PutKind kind = PutKind::latency;
  std::size_t bytes = 0;
  std::size_t window = 1;  ///< puts before an answer; 1 for latency
  int iterations = 0;      ///< round trips or windows of a block; 0: as many as fit 20 ms
  int warm_up = 0;         ///< of them before the first block
  int rounds = 9;          ///< blocks of each loop
};

struct PutResult {
  int iterations = 0;
  /// Per loop, one entry per round: microseconds of a put (latency) or of a window with its answer (bandwidth), as rank
  /// 0 saw it.
  std::vector<std::vector<double>> times_us;
  std::size_t wrong_bytes = 0;  ///< of both ranks, all rounds and loops: of the last message in each slot
};

/// Collective over two ranks; the same result on both but for the times, which are rank 0's. Throws Failure.
PutResult measure_puts(Bootstrap& bootstrap, const std::vector<PutLoop*>& loops, const PutPlan& plan);

}  // namespace torii::perf
