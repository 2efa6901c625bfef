// SPDX-License-Identifier: Apache-2.0
// What the operations do to blocks of two vectors, compiled once per ISA. combine() leaves in (a, b) the result of
// (a, b) op (c, e); the bits are those of the reference kernels.
#if defined(TORII_SIMD_OPERATIONS_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef TORII_SIMD_OPERATIONS_TOGGLE
#undef TORII_SIMD_OPERATIONS_TOGGLE
#else
#define TORII_SIMD_OPERATIONS_TOGGLE
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace torii::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET != HWY_SCALAR

/// An operation on single vectors, applied to both vectors of a block.
template <class Single>
struct Each {
  template <class D, class V>
  static HWY_INLINE void combine(D d, V& a, V& b, V c, V e) {
    a = Single::of(d, a, c);
    b = Single::of(d, b, e);
  }
};

struct AddLanes {
  template <class D, class V>
  static HWY_INLINE V of(D, V a, V b) {
    return hn::Add(a, b);
  }
};

struct MulLanes {
  template <class D, class V>
  static HWY_INLINE V of(D d, V a, V b) {
    if constexpr (sizeof(hn::TFromD<D>) == 1) {
      // There is no multiplication of bytes: the odd ones are multiplied in the upper halves of 16-bit lanes.
      const hn::RepartitionToWide<D> wide;
      const auto low = hn::Set(wide, 0x00ff);
      const auto wide_a = hn::BitCast(wide, a);
      const auto wide_b = hn::BitCast(wide, b);
      const auto even = hn::And(hn::Mul(wide_a, wide_b), low);
      const auto odd = hn::Mul(hn::ShiftRight<8>(wide_a), hn::AndNot(low, wide_b));
      return hn::BitCast(d, hn::Or(even, odd));
    } else {
      return hn::Mul(a, b);
    }
  }
};

/// The smaller of two floats. For equal or unordered operands lesser(a, b) and lesser(b, a) return different ones.
template <class V>
HWY_INLINE V lesser(V a, V b) {
#if HWY_TARGET == HWY_AVX3
  // Comparisons keep the core's clock; 512-bit minimum lowers it.
  return hn::IfThenElse(hn::Lt(a, b), a, b);
#else
  return hn::Min(a, b);
#endif
}

/// NaN wins, -0 < +0.
struct MinLanes {
  template <class D, class V>
  static HWY_INLINE V of(D, V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      // The two differ only for zeros of both signs, where OR keeps the sign, and on x86 for NaN: there each returns
      // its second operand, so one of the two is the NaN, which survives the OR.
      const V either = hn::Or(lesser(a, b), lesser(b, a));
#if HWY_ARCH_X86
      return either;
#else
      return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, either));
#endif
    } else {
      return hn::Min(a, b);
    }
  }
};

/// NaN wins, -0 < +0.
struct MaxLanes {
  template <class D, class V>
  static HWY_INLINE V of(D d, V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      const V sign = hn::SignBit(d);
      return hn::Xor(MinLanes::of(d, hn::Xor(a, sign), hn::Xor(b, sign)), sign);
    } else {
      return hn::Max(a, b);
    }
  }
};

/// min or max of 16-bit or 8-bit floats without conversion, in unsigned lanes: integers that sort in the same order are
/// compared. kNans is the number of NaNs of one sign; shifting the order by it puts those of both signs at the winning
/// end.
template <bool kMin, uint16_t kNans>
struct SmallFloatOrder {
  template <class D, class V>
  static HWY_INLINE auto key(D d, V bits) {
    const hn::RebindToSigned<D> ds;
    const auto sign = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(ds, bits)));
    const auto sorted = hn::Xor(bits, hn::And(sign, hn::Set(d, hwy::LimitsMax<hn::TFromD<decltype(ds)>>())));
    // Unsigned, since the shift wraps on purpose: compilers may assume that signed lanes never overflow.
    const auto nans = hn::Set(d, static_cast<hn::TFromD<D>>(kNans));
    return hn::BitCast(ds, kMin ? hn::Add(sorted, nans) : hn::Sub(sorted, nans));
  }
  template <class D, class V>
  static HWY_INLINE V of(D d, V a, V b) {
    const auto left = key(d, a);
    const auto right = key(d, b);
    const auto take = kMin ? hn::Lt(right, left) : hn::Lt(left, right);
    return hn::IfThenElse(hn::RebindMask(d, take), b, a);
  }
};

struct AndLanes {
  template <class D, class V>
  static HWY_INLINE V of(D, V a, V b) {
    return hn::And(a, b);
  }
};

struct OrLanes {
  template <class D, class V>
  static HWY_INLINE V of(D, V a, V b) {
    return hn::Or(a, b);
  }
};

struct XorLanes {
  template <class D, class V>
  static HWY_INLINE V of(D, V a, V b) {
    return hn::Xor(a, b);
  }
};

/// 1 where a lane is not zero, else 0.
template <class D, class V>
HWY_INLINE V truth(D d, V a) {
  return hn::IfThenZeroElse(hn::Eq(a, hn::Zero(d)), hn::Set(d, 1));
}

struct LogicalAndLanes {
  template <class D, class V>
  static HWY_INLINE V of(D d, V a, V b) {
    return hn::And(truth(d, a), truth(d, b));
  }
};

struct LogicalOrLanes {
  template <class D, class V>
  static HWY_INLINE V of(D d, V a, V b) {
    return truth(d, hn::Or(a, b));
  }
};

struct LogicalXorLanes {
  template <class D, class V>
  static HWY_INLINE V of(D d, V a, V b) {
    return hn::Xor(truth(d, a), truth(d, b));
  }
};

/// (a + bi)(c + ei) by the formula of the contract, no fused multiply-add.
struct ComplexMul {
  template <class D, class V>
  static HWY_INLINE void combine(D, V& a, V& b, V c, V e) {
    const V real = hn::Sub(hn::Mul(a, c), hn::Mul(b, e));
    b = hn::Add(hn::Mul(a, e), hn::Mul(b, c));
    a = real;
  }
};

/// minloc and maxloc: (a, b) and (c, e) are raw bits of values and indices in unsigned lanes. Values are compared by
/// signed integer keys in the same order; all NaNs have the one key that wins.
template <typename Value, bool kMin>
struct Locate {
  template <class D>
  static HWY_INLINE hn::Vec<hn::RebindToSigned<D>> key(D d, hn::Vec<D> raw) {
    const hn::RebindToSigned<D> ds;
    using Signed = hn::TFromD<hn::RebindToSigned<D>>;
    if constexpr (hwy::IsFloat<Value>()) {
      const auto bits = hn::BitCast(ds, raw);
      const auto flip = hn::And(hn::BroadcastSignBit(bits), hn::Set(ds, hwy::LimitsMax<Signed>()));
      const auto nan = hn::Set(ds, kMin ? hwy::LimitsMin<Signed>() : hwy::LimitsMax<Signed>());
      const auto is_nan = hn::IsNaN(hn::BitCast(hn::RebindToFloat<D>(), raw));
      return hn::IfThenElse(hn::RebindMask(ds, is_nan), nan, hn::Xor(bits, flip));
    } else if constexpr (sizeof(Value) < sizeof(Signed)) {
      return hn::BitCast(ds, hn::ShiftLeft<8 * (sizeof(Signed) - sizeof(Value))>(raw));  // drops the padding
    } else {
      (void)d;
      return hn::BitCast(ds, raw);
    }
  }
  template <class D>
  static HWY_INLINE hn::Vec<hn::RebindToSigned<D>> index_key(D, hn::Vec<D> raw) {
    const hn::RebindToSigned<D> ds;
    if constexpr (sizeof(hn::TFromD<D>) == 8) {
      return hn::BitCast(ds, hn::ShiftLeft<32>(raw));  // the upper half is padding
    } else {
      return hn::BitCast(ds, raw);
    }
  }
  template <class D, class V>
  static HWY_INLINE void combine(D d, V& a, V& b, V c, V e) {
    const auto left = key(d, a);
    const auto right = key(d, c);
    const auto better = kMin ? hn::Lt(right, left) : hn::Lt(left, right);
    const auto earlier = hn::And(hn::Eq(left, right), hn::Lt(index_key(d, e), index_key(d, b)));
    const auto take = hn::RebindMask(d, hn::Or(better, earlier));
    a = hn::IfThenElse(take, c, a);
    b = hn::IfThenElse(take, e, b);
  }
};

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace torii::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TORII_SIMD_OPERATIONS_TOGGLE
