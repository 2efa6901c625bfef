// SPDX-License-Identifier: Apache-2.0
// Plain loops: an average is divided once, whatever the number of operands was.
#include "reduce_kernels/average.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "reduce_kernels/kernels.hpp"

namespace torii::kernels {
namespace {

// Sums are divided in a part of this many elements, so that compilers know that sums and averages do not overlap.
constexpr size_t kPartElements = 512;

template <typename T>
void divide_plain(const Sums& sums, void* averages, size_t count, uint32_t operands) noexcept {
  // Integers are divided in 64 bits, so that the number of operands fits beside a narrow sum.
  using Wide =
      std::conditional_t<std::is_floating_point_v<T>, T, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  const Wide divisor = static_cast<Wide>(operands);
  T part[kPartElements];
  for (size_t done = 0; done < count; done += kPartElements) {
    const size_t now = std::min(count - done, kPartElements);
    std::memcpy(part, static_cast<const char*>(sums.address) + done * sizeof(T), now * sizeof(T));
    for (size_t i = 0; i < now; ++i) part[i] = static_cast<T>(static_cast<Wide>(part[i]) / divisor);
    std::memcpy(static_cast<char*>(averages) + done * sizeof(T), part, now * sizeof(T));
  }
}

/// A fold of one source converts.
void divide_small(Type type, const Sums& sums, void* averages, size_t count, uint32_t operands) noexcept {
  const FoldFn fold = find(Op::sum, type);
  const float divisor = static_cast<float>(operands);
  const uint8_t is_wide = 1;
  float part[kPartElements];
  for (size_t done = 0; done < count; done += kPartElements) {
    const size_t now = std::min(count - done, kPartElements);
    const void* source = static_cast<const char*>(sums.address) + done * wire_size(type, sums.are_wide);
    void* target = part;
    Operands operand = {.sources = &source, .source_count = 1, .targets = &target, .target_count = 1};
    operand.wide_sources = sums.are_wide ? &is_wide : nullptr;
    operand.wide_targets = 1;
    fold(operand, now);
    for (size_t i = 0; i < now; ++i) part[i] /= divisor;
    source = part;
    target = static_cast<char*>(averages) + done * size_of(type);
    operand.wide_sources = &is_wide;
    operand.wide_targets = 0;
    fold(operand, now);
  }
}

}  // namespace

const char* why_no_average(Type type) noexcept {
  if (is_pair(type)) return "pairs of value and index can be reduced by minloc and maxloc only";
  if (type == Type::boolean) return "the average of truth values is no truth value; take an integer or floating type";
  return nullptr;
}

const char* why_no_factor(Type type) noexcept {
  if (is_pair(type)) return "pairs of value and index can be reduced by minloc and maxloc only";
  if (type == Type::boolean) return "truth values have no factors; take an integer or floating type";
  return nullptr;
}

void multiply(Type type, const void* elements, const void* factor, void* products, size_t count) noexcept {
  // As many factors as a kernel needs to be fast, and few enough for the first-level cache.
  constexpr size_t kFactorsBytes = 2048;
  const size_t bytes = size_of(type);
  alignas(64) char factors[kFactorsBytes];
  for (size_t at = 0; at < kFactorsBytes; at += bytes) std::memcpy(factors + at, factor, bytes);
  const FoldFn fold = find(Op::prod, type);
  for (size_t done = 0; done < count; done += kFactorsBytes / bytes) {
    const void* sources[] = {static_cast<const char*>(elements) + done * bytes, factors};
    void* target = static_cast<char*>(products) + done * bytes;
    fold({.sources = sources, .source_count = 2, .targets = &target, .target_count = 1},
         std::min(count - done, kFactorsBytes / bytes));
  }
}

void divide(Type type, const Sums& sums, void* averages, size_t count, uint32_t operands) noexcept {
  switch (type) {
    case Type::i8:
      return divide_plain<int8_t>(sums, averages, count, operands);
    case Type::u8:
      return divide_plain<uint8_t>(sums, averages, count, operands);
    case Type::i16:
      return divide_plain<int16_t>(sums, averages, count, operands);
    case Type::u16:
      return divide_plain<uint16_t>(sums, averages, count, operands);
    case Type::i32:
      return divide_plain<int32_t>(sums, averages, count, operands);
    case Type::u32:
      return divide_plain<uint32_t>(sums, averages, count, operands);
    case Type::i64:
      return divide_plain<int64_t>(sums, averages, count, operands);
    case Type::u64:
      return divide_plain<uint64_t>(sums, averages, count, operands);
    case Type::f16:
    case Type::bf16:
    case Type::f8e4m3:
    case Type::f8e5m2:
      return divide_small(type, sums, averages, count, operands);
    case Type::f32:
      return divide_plain<float>(sums, averages, count, operands);
    case Type::f64:
      return divide_plain<double>(sums, averages, count, operands);
    case Type::cf32:
      return divide_plain<float>(sums, averages, 2 * count, operands);
    case Type::cf64:
      return divide_plain<double>(sums, averages, 2 * count, operands);
    default:
      return;  // why_no_average() has refused the call
  }
}

}  // namespace torii::kernels
