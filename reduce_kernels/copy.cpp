// SPDX-License-Identifier: Apache-2.0
// Copies: the C library's for data that is soon read again, streaming stores for other data.
#include <atomic>
#include <cstring>

#include "reduce_kernels/kernels.hpp"
#include "reduce_kernels/simd.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace torii::kernels {
namespace {

// Below this size a streaming copy only delays the reader: the line has to come back from memory.
constexpr size_t kStreamingBytesMin = 2048;

}  // namespace

void copy(void* target, const void* source, size_t bytes, bool streaming) noexcept {
  if (target == source || bytes == 0) return;
  if (streaming && bytes >= kStreamingBytesMin) {
    simd_streaming_copy(target, source, bytes);
  } else {
    std::memcpy(target, source, bytes);
  }
}

void copy_to_targets(const Operands& operands, size_t bytes) noexcept {
  for (int t = 0; t < operands.target_count; ++t) {
    copy(operands.targets[t], operands.sources[0], bytes, has_bit(operands.streaming_targets, t));
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
