// SPDX-License-Identifier: Apache-2.0
// What the memory system of this machine allows: the plainest loops of c = a + b (+ d) in float that a compiler makes,
// with ordinary and with non-temporal stores. Kernels are measured beside the best of them.
#pragma once

#include <cstddef>
#include <vector>

namespace torii::perf {

/// Writes the sum of `source_count` (2 or 3) vectors of `count` floats; vectors are aligned to 64 bytes and count is
/// a multiple of 64.
using LimitFn = void (*)(const float* const* sources, int source_count, float* target, size_t count);

struct LimitLoop {
  const char* name;
  LimitFn run;
};

/// The loops that this machine can run.
std::vector<LimitLoop> limit_loops();

}  // namespace torii::perf
