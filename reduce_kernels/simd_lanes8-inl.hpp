// SPDX-License-Identifier: Apache-2.0
// Truth values and 8-bit floats: lanes as in simd_lanes-inl.hpp, compiled once per ISA.
#if defined(TORII_SIMD_LANES8_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef TORII_SIMD_LANES8_TOGGLE
#undef TORII_SIMD_LANES8_TOGGLE
#else
#define TORII_SIMD_LANES8_TOGGLE
#endif

#include <hwy/highway.h>

#include "reduce_kernels/float8.hpp"
#include "reduce_kernels/simd_lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace torii::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET != HWY_SCALAR

/// Bytes that are loaded as 0 or 1.
template <class Tag = Full<uint8_t>>
struct TruthLanes : PlainLanes<uint8_t, Tag> {
  using Base = PlainLanes<uint8_t, Tag>;
  using typename Base::D;
  using typename Base::V;
  using Short = TruthLanes<Short16<uint8_t>>;
  using NonTemporal = TruthLanes<Half64<uint8_t>>;
  static constexpr bool kLoadsAsIs = false;
  static HWY_INLINE void load(D d, const void* from, size_t index, bool wide, V& a, V& b) {
    Base::load(d, from, index, wide, a, b);
    a = hn::Min(a, hn::Set(d, 1));
    b = hn::Min(b, hn::Set(d, 1));
  }
};

/// 8-bit floats as float: a has the lower half of a block and b the upper one.
template <class Format, class Tag = Full<float>>
struct F8Lanes {
  using D = Tag;
  using Short = F8Lanes<Format, Short16<float>>;
  using V = hn::Vec<D>;
  using DBits = hn::RebindToUnsigned<D>;
  using DBytes = hn::Rebind<uint8_t, D>;
  static constexpr size_t kElementBytes = 1;
  static constexpr bool kHasWide = true;
  // A block is half a vector or a quarter of one, and stores past the caches need whole ones.
  static constexpr bool kCanStream = false;
  static constexpr bool kLoadsAsIs = true;
  static HWY_INLINE size_t elements(D d) { return 2 * hn::Lanes(d); }

  static HWY_INLINE V widened(D d, hn::Vec<DBytes> bytes) {
    const DBits du;
    const auto bits = hn::PromoteTo(du, bytes);
    const auto sign = hn::ShiftLeft<24>(hn::And(bits, hn::Set(du, 0x80)));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7f));
    const auto shifted = hn::ShiftLeft<Format::kShift>(magnitude);
    auto out = hn::Add(shifted, hn::Set(du, Format::kRebase));
    if constexpr (Format::kHasInfinity) {
      const auto is_special = hn::Gt(magnitude, hn::Set(du, Format::kOverflow - 1));
      out = hn::IfThenElse(is_special, hn::Or(shifted, hn::Set(du, 0x7f800000)), out);
    }
    const auto is_nan = hn::Gt(magnitude, hn::Set(du, 0x7fu - Format::kNans));
    out = hn::IfThenElse(is_nan, hn::Or(out, hn::Set(du, 0x7fc00000)), out);
    // With the exponent of the smallest normal number below the mantissa, subtracting that number leaves exactly the
    // subnormal.
    const auto offset = hn::Set(du, Format::kNormalMinBits);
    const auto exact = hn::Sub(hn::BitCast(d, hn::Add(shifted, offset)), hn::BitCast(d, offset));
    const auto is_subnormal = hn::Lt(magnitude, hn::Set(du, Format::kNormalMin));
    out = hn::IfThenElse(is_subnormal, hn::BitCast(du, exact), out);
    return hn::BitCast(d, hn::Or(out, sign));
  }
  static HWY_INLINE hn::Vec<DBytes> narrowed(D d, V value) {
    const DBits du;
    const auto bits = hn::BitCast(du, value);
    const auto sign = hn::And(hn::ShiftRight<24>(bits), hn::Set(du, 0x80));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffff));
    const auto odd = hn::And(hn::ShiftRight<Format::kShift>(magnitude), hn::Set(du, 1));
    const auto half = hn::Set(du, (1u << (Format::kShift - 1)) - 1u - Format::kRebase);
    const auto normal = hn::ShiftRight<Format::kShift>(hn::Add(hn::Add(magnitude, half), odd));
    const auto align = hn::Set(du, Format::kAlignBits);
    const auto aligned = hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, align));
    const auto subnormal = hn::Sub(hn::BitCast(du, aligned), align);
    const auto is_subnormal = hn::Lt(magnitude, hn::Set(du, Format::kNormalMinBits));
    auto out = hn::Min(hn::IfThenElse(is_subnormal, subnormal, normal), hn::Set(du, Format::kOverflow));
    if constexpr (Format::kHasInfinity) {
      const auto payload = hn::And(hn::ShiftRight<Format::kShift>(magnitude), hn::Set(du, 1));
      const auto quiet = hn::Or(hn::Set(du, 0x7e), payload);
      out = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7f800000)), quiet, out);
    }
    return hn::DemoteTo(DBytes(), hn::BitCast(hn::RebindToSigned<D>(), hn::Or(out, sign)));
  }
  static HWY_INLINE void load(D d, const void* from, size_t index, bool wide, V& a, V& b) {
    if (wide) {
      a = hn::LoadU(d, at<float>(from, index));
      b = hn::LoadU(d, at<float>(from, index) + hn::Lanes(d));
    } else {
      a = widened(d, hn::LoadU(DBytes(), at<uint8_t>(from, index)));
      b = widened(d, hn::LoadU(DBytes(), at<uint8_t>(from, index) + hn::Lanes(d)));
    }
  }
  static HWY_INLINE void store(D d, void* to, size_t index, bool wide, V a, V b) {
    if (wide) {
      hn::StoreU(a, d, at<float>(to, index));
      keep_order();
      hn::StoreU(b, d, at<float>(to, index) + hn::Lanes(d));
    } else {
      hn::StoreU(narrowed(d, a), DBytes(), at<uint8_t>(to, index));
      keep_order();
      hn::StoreU(narrowed(d, b), DBytes(), at<uint8_t>(to, index) + hn::Lanes(d));
    }
  }
};

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace torii::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TORII_SIMD_LANES8_TOGGLE
