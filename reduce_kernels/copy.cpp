// SPDX-License-Identifier: Apache-2.0
// Copies: the C library's for data that is soon read again, non-temporal stores for other data.
#include <atomic>
#include <cstring>

#include "reduce_kernels/kernels.hpp"
#include "reduce_kernels/simd.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace torii::kernels {
namespace {

// Below this size a non-temporal copy only delays the reader: the line has to come back from memory.
constexpr size_t kNonTemporalBytesMin = 2048;

}  // namespace

void copy(void* target, const void* source, size_t bytes, bool non_temporal) noexcept {
  if (target == source || bytes == 0) return;
  if (non_temporal && bytes >= kNonTemporalBytesMin) {
    simd_non_temporal_copy(target, source, bytes);
  } else {
    std::memcpy(target, source, bytes);
  }
}

void copy_to_targets(const Operands& operands, size_t bytes) noexcept {
  for (int t = 0; t < operands.target_count; ++t) {
    copy(operands.targets[t], operands.sources[0], bytes, has_bit(operands.non_temporal_targets, t));
  }
}

void store_fence() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace torii::kernels
