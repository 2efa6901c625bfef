// SPDX-License-Identifier: Apache-2.0
// Which vector ISAs were built and run here, their combined tables, and the non-temporal copy of each.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce_kernels/simd.cpp"
#include <hwy/foreach_target.h>
// The order matters: foreach_target first.
#include <hwy/highway.h>

#include <cstring>

#include "reduce_kernels/simd_fold-inl.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace torii::kernels::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

size_t register_bytes() noexcept { return hn::Lanes(hn::ScalableTag<uint8_t>()); }

/// `bytes` is at least four vectors. The ends share lines with other data and are stored as usual.
void non_temporal_copy(char* target, const char* source, size_t bytes) noexcept {
  const hn::ScalableTag<uint8_t> d;
  const size_t step = hn::Lanes(d);
  const size_t head = (step - reinterpret_cast<uintptr_t>(target) % step) % step;
  std::memcpy(target, source, head);
  size_t i = head;
  const auto* from = reinterpret_cast<const uint8_t*>(source);
  auto* to = reinterpret_cast<uint8_t*>(target);
  for (; i + 4 * step <= bytes; i += 4 * step) {
    const auto v0 = hn::LoadU(d, from + i);
    const auto v1 = hn::LoadU(d, from + i + step);
    const auto v2 = hn::LoadU(d, from + i + 2 * step);
    const auto v3 = hn::LoadU(d, from + i + 3 * step);
    hn::Stream(v0, d, to + i);
    hn::Stream(v1, d, to + i + step);
    hn::Stream(v2, d, to + i + 2 * step);
    hn::Stream(v3, d, to + i + 3 * step);
  }
  std::memcpy(target + i, source + i, bytes - i);
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace torii::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace torii::kernels {
namespace {

#if defined(__x86_64__)
/// Half-precision conversions: some compilers' cpu_supports does not know them.
bool has_f16c() noexcept {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

bool machine_has(Isa isa) noexcept {
#if defined(__x86_64__)
  // All features that the compiler may use in the code of an ISA, not only the one that names it.
  const bool sse4 =
      __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_f16c();
  if (isa == Isa::sse4) return sse4;
  if (isa == Isa::avx2) return avx2;
  if (isa == Isa::avx512) {
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  }
  return false;
#elif defined(__aarch64__)
  if (isa == Isa::neon) return true;
  return isa == Isa::sve && (getauxval(AT_HWCAP) & HWCAP_SVE) != 0;
#else
  (void)isa;
  return false;
#endif
}

using RegisterBytesFn = size_t (*)();
using NonTemporalCopyFn = void (*)(char*, const char*, size_t);

NonTemporalCopyFn best_non_temporal_copy() noexcept {
  const Isa best = best_isa();
  return best == Isa::reference ? nullptr : TORII_CHOOSE_ISA(best, non_temporal_copy);
}

}  // namespace

bool simd_available(Isa isa) noexcept { return simd_fill_arithmetic(isa) != nullptr && machine_has(isa); }

size_t simd_vector_bytes(Isa isa) noexcept {
  const RegisterBytesFn register_bytes = TORII_CHOOSE_ISA(isa, register_bytes);
  return register_bytes();
}

FoldTable simd_table(Isa isa) noexcept {
  FoldTable table;
  for (const FillFn fill : {simd_fill_arithmetic(isa), simd_fill_bits(isa), simd_fill_float(isa), simd_fill_pairs(isa),
                            simd_fill_small(isa)}) {
    fill(table);
  }
  return table;
}

void simd_non_temporal_copy(void* target, const void* source, size_t bytes) noexcept {
  static const NonTemporalCopyFn stream = best_non_temporal_copy();
  if (stream == nullptr) {
    std::memcpy(target, source, bytes);
  } else {
    stream(static_cast<char*>(target), static_cast<const char*>(source), bytes);
  }
}

}  // namespace torii::kernels
#endif  // HWY_ONCE
