// SPDX-License-Identifier: Apache-2.0
// Vector kernels of sum, prod, min and max of integers, compiled once per ISA.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce_kernels/simd_arithmetic.cpp"
#include <hwy/foreach_target.h>
// The order matters: foreach_target first.
#include <hwy/highway.h>

#include "reduce_kernels/simd_fold-inl.hpp"
#include "reduce_kernels/simd_lanes-inl.hpp"
#include "reduce_kernels/simd_operations-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace torii::kernels::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

template <typename T, Type kType>
void fill_wrapping(FoldTable& table, Type type) {
  table.set(Op::sum, type, fold<PlainLanes<T>, Each<AddLanes>, Op::sum, kType, Loops::many>);
  table.set(Op::prod, type, fold<PlainLanes<T>, Each<MulLanes>, Op::prod, kType, Loops::few>);
}

template <typename T, Type kType>
void fill_ordered(FoldTable& table) {
  table.set(Op::min, kType, fold<PlainLanes<T>, Each<MinLanes>, Op::min, kType, Loops::many>);
  table.set(Op::max, kType, fold<PlainLanes<T>, Each<MaxLanes>, Op::max, kType, Loops::many>);
}

/// Wrapping sums and products are the same for both signs: the unsigned kernel serves both.
template <typename Signed, Type kSigned, typename Unsigned, Type kUnsigned>
void fill_width(FoldTable& table) {
  fill_wrapping<Unsigned, kUnsigned>(table, kSigned);
  fill_wrapping<Unsigned, kUnsigned>(table, kUnsigned);
  fill_ordered<Signed, kSigned>(table);
  fill_ordered<Unsigned, kUnsigned>(table);
}

void fill_arithmetic(FoldTable& table) {
  fill_width<int8_t, Type::i8, uint8_t, Type::u8>(table);
  fill_width<int16_t, Type::i16, uint16_t, Type::u16>(table);
  fill_width<int32_t, Type::i32, uint32_t, Type::u32>(table);
  fill_width<int64_t, Type::i64, uint64_t, Type::u64>(table);
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace torii::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace torii::kernels {

FillFn simd_fill_arithmetic(Isa isa) noexcept { return TORII_CHOOSE_ISA(isa, fill_arithmetic); }

}  // namespace torii::kernels
#endif  // HWY_ONCE
