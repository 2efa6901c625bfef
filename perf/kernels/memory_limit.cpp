// SPDX-License-Identifier: Apache-2.0
// Plain loops whose speed is the limit for reduction kernels.
#include "perf/kernels/memory_limit.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace torii::perf {
namespace {

inline __attribute__((always_inline)) void add_plain(const float* const* sources, int source_count,
                                                     float* __restrict target, size_t count) {
  const float* __restrict a = sources[0];
  const float* __restrict b = sources[1];
  if (source_count == 2) {
#pragma GCC unroll 4
    for (size_t i = 0; i < count; ++i) target[i] = a[i] + b[i];
  } else {
    const float* __restrict d = sources[2];
#pragma GCC unroll 4
    for (size_t i = 0; i < count; ++i) target[i] = a[i] + b[i] + d[i];
  }
}

void add_baseline(const float* const* sources, int source_count, float* target, size_t count) {
  add_plain(sources, source_count, target, count);
}

#if defined(__x86_64__)
// No 512-bit loops: their additions lower the clock of the core, for the loops that are timed after them too, and
// where memory is the limit they were never faster.
__attribute__((target("avx2"))) void add_avx2(const float* const* sources, int source_count, float* target,
                                              size_t count) {
  add_plain(sources, source_count, target, count);
}

__attribute__((target("avx2"))) void stream_avx2(const float* const* sources, int source_count, float* target,
                                                 size_t count) {
  const float* third = source_count == 3 ? sources[2] : nullptr;
  for (size_t i = 0; i < count; i += 16) {
    __m256 low = _mm256_add_ps(_mm256_load_ps(sources[0] + i), _mm256_load_ps(sources[1] + i));
    __m256 high = _mm256_add_ps(_mm256_load_ps(sources[0] + i + 8), _mm256_load_ps(sources[1] + i + 8));
    if (third != nullptr) {
      low = _mm256_add_ps(low, _mm256_load_ps(third + i));
      high = _mm256_add_ps(high, _mm256_load_ps(third + i + 8));
    }
    _mm256_stream_ps(target + i, low);
    _mm256_stream_ps(target + i + 8, high);
  }
  _mm_sfence();
}
#endif

}  // namespace

std::vector<LimitLoop> limit_loops() {
  std::vector<LimitLoop> loops = {{"baseline", add_baseline}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    loops.push_back({"avx2", add_avx2});
    loops.push_back({"avx2 non-temporal", stream_avx2});
  }
#endif
  return loops;
}

}  // namespace torii::perf
