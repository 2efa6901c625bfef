// SPDX-License-Identifier: Apache-2.0
// The data of checks and hashes. An element depends on (seed, rank, index, type) only, so every rank can make every
// other rank's input, and two runs with equal flags have equal hashes wherever they run.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <cstdint>

namespace torii::perf {

/// Writes elements [first, first + count) of `rank`'s input to `out`. Real numbers have random signs, full random
/// mantissas and exponents over 2^+-20 (f16: 2^+-4); integers have all bits random and are 0 once in 16 so that logical
/// operations have something to find; pairs repeat values often enough that ties are met.
void fill(uint64_t seed, torii_type type, int rank, size_t first, size_t count, void* out);

/// How many elements have other bits than expected. Any NaN equals any NaN; padding inside pairs is ignored.
size_t count_wrong(torii_type type, const void* got, const void* expected, size_t count);

/// XXH3-64 of `count` elements. Every NaN counts as one and the same NaN, padding inside pairs as zero.
uint64_t hash(torii_type type, const void* data, size_t count);

}  // namespace torii::perf
