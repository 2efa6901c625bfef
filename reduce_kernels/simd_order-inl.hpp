// SPDX-License-Identifier: Apache-2.0
// min and max of 16-bit and 8-bit floats, compiled once per ISA.
#if defined(TORII_SIMD_ORDER_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef TORII_SIMD_ORDER_TOGGLE
#undef TORII_SIMD_ORDER_TOGGLE
#else
#define TORII_SIMD_ORDER_TOGGLE
#endif

#include <hwy/highway.h>

#include "reduce_kernels/simd_fold-inl.hpp"
#include "reduce_kernels/simd_operations-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace torii::kernels::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

/// min or max of floats whose bits are `Bits`: if no operand is wide there is nothing to widen and nothing to round.
template <class Lanes, typename Bits, class Wide, Bits kNans, bool kMin, Op kOp, Type kType>
void fold_order(const Operands& operands, size_t count) noexcept {
  if (has_wide(operands)) {
    fold<Lanes, Each<Wide>, kOp, kType, Loops::shared>(operands, count);
  } else {
    fold<PlainLanes<Bits>, Each<SmallFloatOrder<kMin, kNans>>, kOp, kType, Loops::many>(operands, count);
  }
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace torii::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TORII_SIMD_ORDER_TOGGLE
