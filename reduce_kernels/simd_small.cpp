// SPDX-License-Identifier: Apache-2.0
// Vector kernels of truth values and of 8-bit floats, compiled once per ISA.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce_kernels/simd_small.cpp"
#include <hwy/foreach_target.h>
// The order matters: foreach_target first.
#include <hwy/highway.h>

#include <initializer_list>

#include "reduce_kernels/simd_fold-inl.hpp"
#include "reduce_kernels/simd_lanes8-inl.hpp"
#include "reduce_kernels/simd_operations-inl.hpp"
#include "reduce_kernels/simd_order-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace torii::kernels::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

template <class Format, Type kType>
void fill_real8(FoldTable& table) {
  using Lanes = F8Lanes<Format>;
  table.set(Op::sum, kType, fold<Lanes, Each<AddLanes>, Op::sum, kType, Loops::few>);
  table.set(Op::prod, kType, fold<Lanes, Each<MulLanes>, Op::prod, kType, Loops::few>);
  table.set(Op::min, kType, fold_order<Lanes, uint8_t, MinLanes, Format::kNans, true, Op::min, kType>);
  table.set(Op::max, kType, fold_order<Lanes, uint8_t, MaxLanes, Format::kNans, false, Op::max, kType>);
}

/// Operations that are one for truth values share a kernel, whose short vectors are those of `kOp`.
template <class Single, Op kOp>
void fill_truth(FoldTable& table, std::initializer_list<Op> equal) {
  for (const Op op : equal) {
    table.set(op, Type::boolean, fold<TruthLanes<>, Each<Single>, kOp, Type::boolean, Loops::few>);
  }
}

void fill_small(FoldTable& table) {
  fill_real8<FormatE4m3, Type::f8e4m3>(table);
  fill_real8<FormatE5m2, Type::f8e5m2>(table);
  fill_truth<AndLanes, Op::land>(table, {Op::prod, Op::min, Op::band, Op::land});
  fill_truth<OrLanes, Op::lor>(table, {Op::sum, Op::max, Op::bor, Op::lor});
  fill_truth<XorLanes, Op::lxor>(table, {Op::bxor, Op::lxor});
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace torii::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace torii::kernels {

FillFn simd_fill_small(Isa isa) noexcept { return TORII_CHOOSE_ISA(isa, fill_small); }

}  // namespace torii::kernels
#endif  // HWY_ONCE
