// SPDX-License-Identifier: Apache-2.0
// Operands are made block by block: a sanitizer then watches one access of a block, not one of every element.
#include "tools/operands.hpp"

#include <algorithm>

namespace torii {
namespace {

constexpr std::size_t kBlock = 512;  // elements

std::uint64_t bits_of(Type type, std::uint64_t word) {
  switch (type) {
    case Type::boolean:  // false half of the time, and true as any byte but 0
      return (word & 0x100) != 0 ? word | 1 : 0;
    case Type::f8e4m3:
      return random_float(word, 3, 4, 3);
    case Type::f8e5m2:
      return random_float(word, 2, 5, 4);
    case Type::f16:
      return random_float(word, 10, 5, 4);
    case Type::bf16:
      return random_float(word, 7, 8, 20);
    case Type::f32:
      return random_float(word, 23, 8, 20);
    case Type::f64:
      return random_float(word, 52, 11, 20);
    default:
      return word;
  }
}

/// Bits is an unsigned type of the element's size.
template <class Bits>
void fill(Type type, std::uint64_t seed, int rank, std::size_t first, std::size_t count, std::byte* out) {
  Bits block[kBlock];
  for (std::size_t done = 0; done < count; done += kBlock) {
    const std::size_t now = std::min(kBlock, count - done);
    for (std::size_t i = 0; i < now; ++i) {
      block[i] = static_cast<Bits>(bits_of(type, random_word(seed, rank, first + done + i)));
    }
    std::memcpy(out + done * sizeof(Bits), block, now * sizeof(Bits));
  }
}

}  // namespace

void fill_operand(Type type, std::uint64_t seed, int rank, std::size_t first, std::size_t count, void* out) {
  auto* const bytes = static_cast<std::byte*>(out);
  if (type == Type::cf32) return fill_operand(Type::f32, seed, rank, 2 * first, 2 * count, out);
  if (type == Type::cf64) return fill_operand(Type::f64, seed, rank, 2 * first, 2 * count, out);
  if (is_pair(type)) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memset(bytes + i * size_of(type), static_cast<int>(random_word(seed, rank, first + i) % 100), size_of(type));
    }
    return;
  }
  switch (size_of(type)) {
    case 1:
      return fill<std::uint8_t>(type, seed, rank, first, count, bytes);
    case 2:
      return fill<std::uint16_t>(type, seed, rank, first, count, bytes);
    case 4:
      return fill<std::uint32_t>(type, seed, rank, first, count, bytes);
    default:
      return fill<std::uint64_t>(type, seed, rank, first, count, bytes);
  }
}

}  // namespace torii
