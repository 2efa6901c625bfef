// SPDX-License-Identifier: Apache-2.0
// Plain loops: an average is divided once, whatever the number of operands was.
#include "reduce_kernels/average.hpp"

#include <cstring>
#include <type_traits>

#include "reduce_kernels/float16.hpp"
#include "reduce_kernels/float8.hpp"

namespace torii::kernels {
namespace {

template <typename T>
T load_as(const void* from, size_t index) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char*>(from) + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store_as(void* to, size_t index, T value) noexcept {
  std::memcpy(static_cast<char*>(to) + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
void divide_plain(const Sums& sums, void* averages, size_t count, uint32_t operands) noexcept {
  // Integers are divided in 64 bits, so that the number of operands fits beside a narrow sum.
  using Wide =
      std::conditional_t<std::is_floating_point_v<T>, T, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  const Wide divisor = static_cast<Wide>(operands);
  for (size_t i = 0; i < count; ++i) {
    store_as(averages, i, static_cast<T>(static_cast<Wide>(load_as<T>(sums.address, i)) / divisor));
  }
}

template <typename Bits, float (*widen)(Bits) noexcept, Bits (*narrow)(float) noexcept>
void divide_small(const Sums& sums, void* averages, size_t count, uint32_t operands) noexcept {
  const float divisor = static_cast<float>(operands);
  for (size_t i = 0; i < count; ++i) {
    const float sum = sums.are_wide ? load_as<float>(sums.address, i) : widen(load_as<Bits>(sums.address, i));
    store_as(averages, i, narrow(sum / divisor));
  }
}

}  // namespace

const char* why_no_average(Type type) noexcept {
  if (is_pair(type)) return "pairs of value and index can be reduced by minloc and maxloc only";
  if (type == Type::boolean) return "the average of truth values is no truth value; take an integer or floating type";
  return nullptr;
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
      return divide_small<uint16_t, f16_to_f32, f32_to_f16>(sums, averages, count, operands);
    case Type::bf16:
      return divide_small<uint16_t, bf16_to_f32, f32_to_bf16>(sums, averages, count, operands);
    case Type::f8e4m3:
      return divide_small<uint8_t, e4m3_to_f32, f32_to_e4m3>(sums, averages, count, operands);
    case Type::f8e5m2:
      return divide_small<uint8_t, e5m2_to_f32, f32_to_e5m2>(sums, averages, count, operands);
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
