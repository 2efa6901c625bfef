// SPDX-License-Identifier: Apache-2.0
// Vector kernels of bitwise and logical operations, compiled once per ISA.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce_kernels/simd_bits.cpp"
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
void fill_bits_of(FoldTable& table, Type type) {
  using Lanes = PlainLanes<T>;
  table.set(Op::band, type, fold<Lanes, Each<AndLanes>, Op::band, kType, Loops::few>);
  table.set(Op::bor, type, fold<Lanes, Each<OrLanes>, Op::bor, kType, Loops::few>);
  table.set(Op::bxor, type, fold<Lanes, Each<XorLanes>, Op::bxor, kType, Loops::few>);
  table.set(Op::land, type, fold<Lanes, Each<LogicalAndLanes>, Op::land, kType, Loops::few>);
  table.set(Op::lor, type, fold<Lanes, Each<LogicalOrLanes>, Op::lor, kType, Loops::few>);
  table.set(Op::lxor, type, fold<Lanes, Each<LogicalXorLanes>, Op::lxor, kType, Loops::few>);
}

/// Signs do not matter here: the unsigned kernel serves both.
template <typename T, Type kUnsigned>
void fill_bits_width(FoldTable& table, Type signed_type) {
  fill_bits_of<T, kUnsigned>(table, signed_type);
  fill_bits_of<T, kUnsigned>(table, kUnsigned);
}

void fill_bits(FoldTable& table) {
  fill_bits_width<uint8_t, Type::u8>(table, Type::i8);
  fill_bits_width<uint16_t, Type::u16>(table, Type::i16);
  fill_bits_width<uint32_t, Type::u32>(table, Type::i32);
  fill_bits_width<uint64_t, Type::u64>(table, Type::i64);
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace torii::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace torii::kernels {

FillFn simd_fill_bits(Isa isa) noexcept { return TORII_CHOOSE_ISA(isa, fill_bits); }

}  // namespace torii::kernels
#endif  // HWY_ONCE
