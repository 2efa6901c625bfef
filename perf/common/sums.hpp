// SPDX-License-Identifier: Apache-2.0
// Checks of sums by libraries that promise no order of summing.
#pragma once

#include <cstdint>

#include "perf/common/buffers.hpp"
#include "perf/common/job.hpp"

namespace torii::perf {

/// The elements of this rank's result that are further from the sum in double than any order of float sums can be. The
/// call combines f32 by sum, with input pattern 0 of `seed`.
int64_t count_wrong_sums(const Job& job, const CallData& data, uint64_t seed);

}  // namespace torii::perf
