// SPDX-License-Identifier: Apache-2.0
// How one block of each kind of element moves between memory and two vectors (a, b), compiled once per ISA.
// Lanes types have: D, Short (the same in 16-byte vectors), kElementBytes, kHasWide, kCanStream, elements(), load(),
// kLoadsAsIs (bytes that are loaded and stored stay as they are), store() and, where kCanStream, stream() to an aligned
// address and Non-temporal (the same in the vectors that suit it).
#if defined(TORII_SIMD_LANES_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef TORII_SIMD_LANES_TOGGLE
#undef TORII_SIMD_LANES_TOGGLE
#else
#define TORII_SIMD_LANES_TOGGLE
#endif

#include <hwy/highway.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace torii::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET != HWY_SCALAR

template <typename T>
using Full = hn::ScalableTag<T>;
template <typename T>
using Short16 = hn::CappedTag<T, 16 / sizeof(T)>;
// Two of these fill a cache line.
template <typename T>
using Half64 = hn::CappedTag<T, 32 / sizeof(T)>;

template <typename T>
HWY_INLINE const T* at(const void* from, size_t index) {
  return static_cast<const T*>(from) + index;
}
template <typename T>
HWY_INLINE T* at(void* to, size_t index) {
  return static_cast<T*>(to) + index;
}

/// Keeps the compiler from moving stores across. It tends to shuffle the stores of a loop, and storing the halves of a
/// line apart costs a third of the speed in the second-level cache.
HWY_INLINE void keep_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// a and b are neighbours.
template <typename T, class Tag = Full<T>>
struct PlainLanes {
  using D = Tag;
  using Short = PlainLanes<T, Short16<T>>;
  using NonTemporal = PlainLanes<T, Half64<T>>;
  using V = hn::Vec<D>;
  static constexpr size_t kElementBytes = sizeof(T);
  static constexpr bool kHasWide = false;
  static constexpr bool kLoadsAsIs = true;
  static constexpr bool kCanStream = true;
  static HWY_INLINE size_t elements(D d) { return 2 * hn::Lanes(d); }
  static HWY_INLINE void load(D d, const void* from, size_t index, bool, V& a, V& b) {
    a = hn::LoadU(d, at<T>(from, index));
    b = hn::LoadU(d, at<T>(from, index) + hn::Lanes(d));
  }
  static HWY_INLINE void store(D d, void* to, size_t index, bool, V a, V b) {
    hn::StoreU(a, d, at<T>(to, index));
    keep_order();
    hn::StoreU(b, d, at<T>(to, index) + hn::Lanes(d));
  }
  static HWY_INLINE void stream(D d, void* to, size_t index, V a, V b) {
    hn::Stream(a, d, at<T>(to, index));
    keep_order();
    hn::Stream(b, d, at<T>(to, index) + hn::Lanes(d));
  }
};

/// Elements of two equal parts, separated: a has the first parts, b the second ones.
template <typename T, class Tag = Full<T>>
struct TwoPartLanes {
  using D = Tag;
  using Short = TwoPartLanes<T, Short16<T>>;
  using V = hn::Vec<D>;
  static constexpr size_t kElementBytes = 2 * sizeof(T);
  static constexpr bool kHasWide = false;
  static constexpr bool kLoadsAsIs = true;
  static constexpr bool kCanStream = false;
  static HWY_INLINE size_t elements(D d) { return hn::Lanes(d); }
  static HWY_INLINE void load(D d, const void* from, size_t index, bool, V& a, V& b) {
    hn::LoadInterleaved2(d, at<T>(from, 2 * index), a, b);
  }
  static HWY_INLINE void store(D d, void* to, size_t index, bool, V a, V b) {
    hn::StoreInterleaved2(a, b, d, at<T>(to, 2 * index));
  }
};

/// bf16 as float: a has the even elements and b the odd ones, so that widening and narrowing need no shuffles.
template <class Tag = Full<float>>
struct Bf16Lanes {
  using D = Tag;
  using Short = Bf16Lanes<Short16<float>>;
  using NonTemporal = Bf16Lanes;
  using V = hn::Vec<D>;
  using DBits = hn::RebindToUnsigned<D>;
  static constexpr size_t kElementBytes = sizeof(uint16_t);
  static constexpr bool kHasWide = true;
  static constexpr bool kLoadsAsIs = true;
  static constexpr bool kCanStream = true;
  static HWY_INLINE size_t elements(D d) { return 2 * hn::Lanes(d); }

  /// The bits of the nearest bf16, ties to even, in the upper halves; the lower halves are not cleared.
  static HWY_INLINE hn::Vec<DBits> rounded(V value) {
    const DBits bits_tag;
    const auto bits = hn::BitCast(bits_tag, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(bits_tag, 1));
    const auto nearest = hn::Add(hn::Add(bits, hn::Set(bits_tag, 0x7fff)), odd);
    const auto quiet = hn::Or(bits, hn::Set(bits_tag, 0x400000));
    return hn::IfThenElse(hn::RebindMask(bits_tag, hn::IsNaN(value)), quiet, nearest);
  }
  static HWY_INLINE hn::Vec<DBits> narrowed(V a, V b) {
    const auto upper = hn::And(rounded(b), hn::Set(DBits(), 0xffff0000u));
    return hn::Or(hn::ShiftRight<16>(rounded(a)), upper);
  }
  // Two bf16 make one 32-bit lane; addresses need no alignment.
  static HWY_INLINE const uint32_t* lane_at(const void* from, size_t index) {
    return reinterpret_cast<const uint32_t*>(static_cast<const char*>(from) + index * kElementBytes);
  }
  static HWY_INLINE uint32_t* lane_at(void* to, size_t index) {
    return reinterpret_cast<uint32_t*>(static_cast<char*>(to) + index * kElementBytes);
  }
  static HWY_INLINE void load(D d, const void* from, size_t index, bool wide, V& a, V& b) {
    if (wide) {
      hn::LoadInterleaved2(d, at<float>(from, index), a, b);
    } else {
      const auto both = hn::LoadU(DBits(), lane_at(from, index));
      a = hn::BitCast(d, hn::ShiftLeft<16>(both));
      b = hn::BitCast(d, hn::And(both, hn::Set(DBits(), 0xffff0000u)));
    }
  }
  static HWY_INLINE void store(D d, void* to, size_t index, bool wide, V a, V b) {
    if (wide) {
      hn::StoreInterleaved2(a, b, d, at<float>(to, index));
    } else {
      hn::StoreU(narrowed(a, b), DBits(), lane_at(to, index));
    }
  }
  static HWY_INLINE void stream(D, void* to, size_t index, V a, V b) {
    hn::Stream(narrowed(a, b), DBits(), lane_at(to, index));
  }
};

/// f16 as float: a has the lower half of a block and b the upper one.
template <class Tag = Full<float>>
struct F16Lanes {
  using D = Tag;
  using Short = F16Lanes<Short16<float>>;
  using NonTemporal = F16Lanes;
  using V = hn::Vec<D>;
  using DBlock = hn::Repartition<uint16_t, D>;
  static constexpr size_t kElementBytes = sizeof(uint16_t);
  static constexpr bool kHasWide = true;
  static constexpr bool kLoadsAsIs = true;
  static constexpr bool kCanStream = true;
  static HWY_INLINE size_t elements(D d) { return 2 * hn::Lanes(d); }

// SSE4 has no conversion instructions, and the SIMD library's substitute does not handle infinity and NaN.
#if HWY_TARGET == HWY_SSE4
  using DHalf = hn::Rebind<uint16_t, D>;
  using Element = uint16_t;
  static HWY_INLINE V widened(D d, hn::Vec<DHalf> half) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::PromoteTo(du, half);
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fff));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto is_special = hn::Gt(magnitude, hn::Set(du, 0x7bff));
    const auto is_subnormal = hn::Lt(magnitude, hn::Set(du, 0x400));
    const auto is_nan = hn::Gt(magnitude, hn::Set(du, 0x7c00));
    auto out = hn::Add(shifted, hn::Set(du, 112u << 23));
    out = hn::IfThenElse(is_special, hn::Or(shifted, hn::Set(du, 0x7f800000)), out);
    out = hn::IfThenElse(is_nan, hn::Or(out, hn::Set(du, 0x400000)), out);
    // With the exponent of 2^-14 below the mantissa, subtracting that power leaves exactly the subnormal.
    const auto offset = hn::Set(du, 113u << 23);
    const auto exact = hn::Sub(hn::BitCast(d, hn::Add(shifted, offset)), hn::BitCast(d, offset));
    out = hn::IfThenElse(is_subnormal, hn::BitCast(du, exact), out);
    return hn::BitCast(d, hn::Or(out, sign));
  }
  static HWY_INLINE hn::Vec<DHalf> narrowed(D d, V value) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, value);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffff));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
    const auto rebased = hn::Sub(hn::Add(magnitude, hn::Set(du, 0xfff)), hn::Set(du, 112u << 23));
    const auto normal = hn::ShiftRight<13>(hn::Add(rebased, odd));
    const auto half = hn::Set(d, 0.5f);
    const auto aligned = hn::Add(hn::BitCast(d, magnitude), half);
    const auto subnormal = hn::Sub(hn::BitCast(du, aligned), hn::BitCast(du, half));
    auto out = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x38800000)), subnormal, normal);
    out = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x477fefff)), hn::Set(du, 0x7c00), out);
    const auto quiet = hn::Or(hn::Set(du, 0x7e00), hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x1ff)));
    out = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7f800000)), quiet, out);
    return hn::DemoteTo(DHalf(), hn::BitCast(hn::RebindToSigned<D>(), hn::Or(out, sign)));
  }
#else
  using DHalf = hn::Rebind<hwy::float16_t, D>;
  using Element = hwy::float16_t;
  static HWY_INLINE V widened(D d, hn::Vec<DHalf> half) { return hn::PromoteTo(d, half); }
  static HWY_INLINE hn::Vec<DHalf> narrowed(D, V value) { return hn::DemoteTo(DHalf(), value); }
#endif

  /// A whole block as 16-bit elements, in one vector: non-temporal stores need full ones.
  static HWY_INLINE hn::Vec<DBlock> block(D d, V a, V b) {
    const hn::Half<DBlock> half;
    return hn::Combine(DBlock(), hn::BitCast(half, narrowed(d, b)), hn::BitCast(half, narrowed(d, a)));
  }
  static HWY_INLINE void load(D d, const void* from, size_t index, bool wide, V& a, V& b) {
    if (wide) {
      a = hn::LoadU(d, at<float>(from, index));
      b = hn::LoadU(d, at<float>(from, index) + hn::Lanes(d));
    } else {
      a = widened(d, hn::LoadU(DHalf(), at<Element>(from, index)));
      b = widened(d, hn::LoadU(DHalf(), at<Element>(from, index) + hn::Lanes(d)));
    }
  }
  static HWY_INLINE void store(D d, void* to, size_t index, bool wide, V a, V b) {
    if (wide) {
      hn::StoreU(a, d, at<float>(to, index));
      keep_order();
      hn::StoreU(b, d, at<float>(to, index) + hn::Lanes(d));
    } else {
      hn::StoreU(block(d, a, b), DBlock(), at<uint16_t>(to, index));
    }
  }
  static HWY_INLINE void stream(D d, void* to, size_t index, V a, V b) {
    hn::Stream(block(d, a, b), DBlock(), at<uint16_t>(to, index));
  }
};

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace torii::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TORII_SIMD_LANES_TOGGLE
