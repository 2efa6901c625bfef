// SPDX-License-Identifier: Apache-2.0
// Conversions between float and the two 8-bit formats of the Open Compute Project (OCP 8-bit Floating Point
// Specification, revision 1.0), rounding to nearest even and not saturating.
#pragma once

#include <bit>
#include <cstdint>

namespace torii::kernels {

/// A format of 8 bits: sign, exponent with that bias, mantissa.
template <int kMantissa, int kExponentBias, bool kInfinity>
struct Float8Format {
  static constexpr bool kHasInfinity = kInfinity;
  static constexpr int kMantissaBits = kMantissa;
  static constexpr int kBias = kExponentBias;
  static constexpr int kShift = 23 - kMantissa;  ///< from here to the mantissa of a float
  /// Added to the shifted magnitude of a normal number.
  static constexpr uint32_t kRebase = static_cast<uint32_t>(127 - kBias) << 23;
  /// The smallest normal number, as a magnitude here and as the bits of a float.
  static constexpr uint32_t kNormalMin = 1u << kMantissa;
  static constexpr uint32_t kNormalMinBits = kRebase + (1u << 23);
  /// The magnitude of all that overflows: infinity, or the one NaN of a format without infinity.
  static constexpr uint32_t kOverflow = kInfinity ? 0x7fu - (kNormalMin - 1u) : 0x7fu;
  /// NaNs of one sign.
  static constexpr uint8_t kNans = kInfinity ? kNormalMin - 1u : 1u;
  /// The bits of the power of two whose last place is a subnormal's: adding it rounds as a subnormal is rounded.
  static constexpr uint32_t kAlignBits = static_cast<uint32_t>(127 + 24 - kBias - kMantissa) << 23;
};
using FormatE4m3 = Float8Format<3, 7, false>;  ///< largest number 448, no infinity, NaN is 0x7f and 0xff
using FormatE5m2 = Float8Format<2, 15, true>;  ///< largest number 57344, infinity and NaNs as in IEEE 754

/// To float: exact, subnormals included; a NaN becomes quiet.
template <class Format>
float f8_to_f32(uint8_t bits) noexcept {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t magnitude = bits & 0x7fu;
  uint32_t out = (magnitude << Format::kShift) + Format::kRebase;
  if (magnitude > 0x7fu - Format::kNans) {
    out = (magnitude << Format::kShift) | 0x7fc00000u;
  } else if (Format::kHasInfinity && magnitude == Format::kOverflow) {
    out = 0x7f800000u;
  } else if (magnitude < Format::kNormalMin) {
    const float smallest =
        std::bit_cast<float>(Format::kNormalMinBits - (static_cast<uint32_t>(Format::kMantissaBits) << 23));
    out = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * smallest);
  }
  return std::bit_cast<float>(out | sign);
}

/// From float, to nearest even. What rounds to more than the largest number becomes infinity, or NaN where the format
/// has no infinity. A NaN stays a NaN.
template <class Format>
uint8_t f32_to_f8(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t out;
  if (magnitude < Format::kNormalMinBits) {
    const float align = std::bit_cast<float>(Format::kAlignBits);
    out = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + align) - Format::kAlignBits;
  } else {
    const uint32_t odd = (magnitude >> Format::kShift) & 1u;
    out = (magnitude - Format::kRebase + (1u << (Format::kShift - 1)) - 1u + odd) >> Format::kShift;
    if (out > Format::kOverflow) out = Format::kOverflow;
  }
  if (Format::kHasInfinity && magnitude > 0x7f800000u) out = 0x7eu | ((magnitude >> Format::kShift) & 1u);
  return static_cast<uint8_t>(out | sign);
}

inline float e4m3_to_f32(uint8_t bits) noexcept { return f8_to_f32<FormatE4m3>(bits); }
inline float e5m2_to_f32(uint8_t bits) noexcept { return f8_to_f32<FormatE5m2>(bits); }
inline uint8_t f32_to_e4m3(float value) noexcept { return f32_to_f8<FormatE4m3>(value); }
inline uint8_t f32_to_e5m2(float value) noexcept { return f32_to_f8<FormatE5m2>(value); }

}  // namespace torii::kernels
