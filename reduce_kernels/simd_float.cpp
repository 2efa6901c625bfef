// SPDX-License-Identifier: Apache-2.0
// Vector kernels of all floating types, compiled once per ISA.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce_kernels/simd_float.cpp"
#include <hwy/foreach_target.h>
// The order matters: foreach_target first.
#include <hwy/highway.h>

#include "reduce_kernels/simd_fold-inl.hpp"
#include "reduce_kernels/simd_lanes-inl.hpp"
#include "reduce_kernels/simd_operations-inl.hpp"
#include "reduce_kernels/simd_order-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace torii::kernels::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

template <class Lanes, Type kType>
void fill_real(FoldTable& table) {
  table.set(Op::sum, kType, fold<Lanes, Each<AddLanes>, Op::sum, kType, Loops::many>);
  table.set(Op::prod, kType, fold<Lanes, Each<MulLanes>, Op::prod, kType, Loops::few>);
  table.set(Op::min, kType, fold<Lanes, Each<MinLanes>, Op::min, kType, Loops::many>);
  table.set(Op::max, kType, fold<Lanes, Each<MaxLanes>, Op::max, kType, Loops::many>);
}

template <class Lanes, Type kType, uint16_t kNans>
void fill_real16(FoldTable& table) {
  table.set(Op::sum, kType, fold<Lanes, Each<AddLanes>, Op::sum, kType, Loops::many>);
  table.set(Op::prod, kType, fold<Lanes, Each<MulLanes>, Op::prod, kType, Loops::few>);
  table.set(Op::min, kType, fold_order<Lanes, uint16_t, MinLanes, kNans, true, Op::min, kType>);
  table.set(Op::max, kType, fold_order<Lanes, uint16_t, MaxLanes, kNans, false, Op::max, kType>);
}

template <typename T, Type kReal, Type kComplex>
void fill_complex(FoldTable& table) {
  table.set(Op::sum, kComplex, fold_parts<PlainLanes<T>, Each<AddLanes>, Op::sum, kReal, Loops::many, 2>);
  table.set(Op::prod, kComplex, fold<TwoPartLanes<T>, ComplexMul, Op::prod, kComplex, Loops::few>);
}

void fill_float(FoldTable& table) {
  fill_real16<F16Lanes<>, Type::f16, 0x3ff>(table);
  fill_real16<Bf16Lanes<>, Type::bf16, 0x7f>(table);
  fill_real<PlainLanes<float>, Type::f32>(table);
  fill_real<PlainLanes<double>, Type::f64>(table);
  fill_complex<float, Type::f32, Type::cf32>(table);
  fill_complex<double, Type::f64, Type::cf64>(table);
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace torii::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace torii::kernels {

FillFn simd_fill_float(Isa isa) noexcept { return TORII_CHOOSE_ISA(isa, fill_float); }

}  // namespace torii::kernels
#endif  // HWY_ONCE
