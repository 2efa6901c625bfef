// SPDX-License-Identifier: Apache-2.0
// Conversions between float and the two 16-bit formats, rounding to nearest even. They are written by hand since
// bf16 has no portable type in C++20 and common libraries truncate it.
#pragma once

#include <bit>
#include <cstdint>

namespace torii::kernels {

/// bfloat16 bits to float: exact.
inline float bf16_to_f32(uint16_t bits) noexcept { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

/// float to bfloat16 bits, to nearest even; a NaN stays a NaN and becomes quiet.
inline uint16_t f32_to_bf16(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// IEEE binary16 bits to float: exact, subnormals included; a NaN becomes quiet.
inline float f16_to_f32(uint16_t bits) noexcept {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  uint32_t out = (magnitude << 13) + (112u << 23);
  if (magnitude > 0x7c00u) {
    out = (magnitude << 13) | 0x7fc00000u;
  } else if (magnitude == 0x7c00u) {
    out = 0x7f800000u;
  } else if (magnitude < 0x400u) {
    // A subnormal is magnitude x 2^-24; the product is exact and never subnormal in float.
    out = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  }
  return std::bit_cast<float>(out | sign);
}

/// float to IEEE binary16 bits, to nearest even; beyond 65519.99 infinity, a NaN stays a NaN and becomes quiet.
inline uint16_t f32_to_f16(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t out;
  if (magnitude > 0x7f800000u) {
    out = 0x7e00u | ((magnitude >> 13) & 0x1ffu);
  } else if (magnitude >= 0x477ff000u) {
    out = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    // Below 2^-14 the result is subnormal: after adding 0.5 the value is in units of 2^-24, rounded by the hardware.
    out = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    out = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<uint16_t>(out | sign);
}

}  // namespace torii::kernels
