// SPDX-License-Identifier: Apache-2.0
// Vector kernels of minloc and maxloc, compiled once per ISA.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce_kernels/simd_pairs.cpp"
#include <hwy/foreach_target.h>
// The order matters: foreach_target first.
#include <hwy/highway.h>

#include "reduce_kernels/simd_fold-inl.hpp"
#include "reduce_kernels/simd_lanes-inl.hpp"
#include "reduce_kernels/simd_operations-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace torii::kernels::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

template <typename Value, Type kType>
void fill_pair(FoldTable& table) {
  // Pairs of 64-bit values have 32 bits of padding beside the index, so both parts move as 64 bits.
  using Lanes = TwoPartLanes<std::conditional_t<sizeof(Value) == 8, uint64_t, uint32_t>>;
  static_assert(Lanes::kElementBytes == sizeof(Pair<Value>));
  table.set(Op::minloc, kType, fold<Lanes, Locate<Value, true>, Op::minloc, kType, Loops::few>);
  table.set(Op::maxloc, kType, fold<Lanes, Locate<Value, false>, Op::maxloc, kType, Loops::few>);
}

void fill_pairs(FoldTable& table) {
  fill_pair<int16_t, Type::i16_i32>(table);
  fill_pair<int32_t, Type::i32_i32>(table);
  fill_pair<int64_t, Type::i64_i32>(table);
  fill_pair<float, Type::f32_i32>(table);
  fill_pair<double, Type::f64_i32>(table);
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace torii::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace torii::kernels {

FillFn simd_fill_pairs(Isa isa) noexcept { return TORII_CHOOSE_ISA(isa, fill_pairs); }

}  // namespace torii::kernels
#endif  // HWY_ONCE
