// SPDX-License-Identifier: Apache-2.0
// Operands that depend on (seed, rank, index, type) only: random mantissas and signs, exponents over a wide range, so
// that every change of order or rounding shows in the bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "reduce_kernels/types.hpp"

namespace torii {

inline std::uint64_t random_word(std::uint64_t seed, int rank, std::size_t index) {
  std::uint64_t x = seed * 0x2545f4914f6cdd1dULL + (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15ULL +
                    index * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// The bits of a floating-point number with `mantissa_bits`, and exponents within `spread` of 1 either way.
inline std::uint64_t random_float(std::uint64_t word, int mantissa_bits, int exponent_bits, int spread) {
  const std::uint64_t bias = (std::uint64_t{1} << (exponent_bits - 1)) - 1;
  const auto range = static_cast<std::uint64_t>(2 * spread + 1);
  // The exponent takes bits that no mantissa but a double's lowest ones uses.
  const std::uint64_t exponent = bias - static_cast<std::uint64_t>(spread) + (word & 0xfff) % range;
  const std::uint64_t mantissa = (word >> (63 - mantissa_bits)) & ((std::uint64_t{1} << mantissa_bits) - 1);
  return ((word >> 63) << (mantissa_bits + exponent_bits)) | (exponent << mantissa_bits) | mantissa;
}

/// Writes elements [first, first + count) of `rank`: numbers that are no NaNs, of pairs small integers.
void fill_operand(Type type, std::uint64_t seed, int rank, std::size_t first, std::size_t count, void* out);

/// Whether both hold the same bytes. std::equal would take std::byte by std::byte.
inline bool same_bytes(std::span<const std::byte> left, std::span<const std::byte> right) {
  return left.size() == right.size() && (left.empty() || std::memcmp(left.data(), right.data(), left.size()) == 0);
}

}  // namespace torii
