// SPDX-License-Identifier: Apache-2.0
// The plain reference kernels, written to be read; the vector kernels are for speed.
#include "reduce_kernels/reference.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>

#include "reduce_kernels/float16.hpp"
#include "reduce_kernels/float8.hpp"

namespace torii::kernels {
namespace {

// Integers are added and multiplied as unsigned of at least 32 bits: wrapping is then defined for all widths.
template <typename T>
auto to_wrapping(T value) noexcept {
  if constexpr (sizeof(T) < 4) {
    return static_cast<uint32_t>(value);
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

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

/// A pair as raw words: copying a structure need not copy its padding, but copying words does.
template <typename V>
struct RawPair {
  std::array<uint64_t, sizeof(Pair<V>) / sizeof(uint64_t)> words;
  V value() const noexcept { return std::bit_cast<Pair<V>>(words).value; }
  int32_t index() const noexcept { return std::bit_cast<Pair<V>>(words).index; }
};

/// Elements that are folded in the type in which they are stored.
template <typename T>
struct Plain {
  using Value = T;
  static T load(const void* from, size_t index, bool) noexcept { return load_as<T>(from, index); }
  static void store(void* to, size_t index, T value, bool) noexcept { store_as(to, index, value); }
};

/// Truth values: every byte but 0 is loaded as 1.
struct Truth : Plain<uint8_t> {
  static uint8_t load(const void* from, size_t index, bool) noexcept { return load_as<uint8_t>(from, index) != 0; }
};

/// 16-bit and 8-bit floats: folded in float, stored as `Bits` or, when wide, as float.
template <typename Bits, float (*widen)(Bits) noexcept, Bits (*narrow)(float) noexcept>
struct SmallFloat {
  using Value = float;
  static float load(const void* from, size_t index, bool wide) noexcept {
    return wide ? load_as<float>(from, index) : widen(load_as<Bits>(from, index));
  }
  static void store(void* to, size_t index, float value, bool wide) noexcept {
    if (wide) {
      store_as(to, index, value);
    } else {
      store_as(to, index, narrow(value));
    }
  }
};

struct Sum {
  template <typename T>
  static T combine(T a, T b) noexcept {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(to_wrapping(a) + to_wrapping(b));
    } else {
      return a + b;
    }
  }
};

struct Prod {
  template <typename T>
  static T combine(T a, T b) noexcept {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(to_wrapping(a) * to_wrapping(b));
    } else {
      return a * b;
    }
  }
  // std::complex's operator repairs infinities and may be contracted, so the contract names the formula.
  template <typename T>
  static std::complex<T> combine(std::complex<T> a, std::complex<T> b) noexcept {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};

/// True if a is before b in the order of min: NaN first, then by value, -0 before +0.
template <typename T>
bool min_order(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
    if (a == b) return std::signbit(a) && !std::signbit(b);
  }
  return a < b;
}

/// True if a is before b in the order of max: NaN first, then by value, +0 before -0.
template <typename T>
bool max_order(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
    if (a == b) return !std::signbit(a) && std::signbit(b);
  }
  return a > b;
}

struct Min {
  template <typename T>
  static T combine(T a, T b) noexcept {
    return min_order(b, a) ? b : a;
  }
};

struct Max {
  template <typename T>
  static T combine(T a, T b) noexcept {
    return max_order(b, a) ? b : a;
  }
};

struct BitAnd {
  template <typename T>
  static T combine(T a, T b) noexcept {
    return static_cast<T>(a & b);
  }
};

struct BitOr {
  template <typename T>
  static T combine(T a, T b) noexcept {
    return static_cast<T>(a | b);
  }
};

struct BitXor {
  template <typename T>
  static T combine(T a, T b) noexcept {
    return static_cast<T>(a ^ b);
  }
};

struct LogicalAnd {
  template <typename T>
  static T combine(T a, T b) noexcept {
    return static_cast<T>(a != 0 && b != 0);
  }
};

struct LogicalOr {
  template <typename T>
  static T combine(T a, T b) noexcept {
    return static_cast<T>(a != 0 || b != 0);
  }
};

struct LogicalXor {
  template <typename T>
  static T combine(T a, T b) noexcept {
    return static_cast<T>((a != 0) != (b != 0));
  }
};

struct MinLoc {
  template <typename V>
  static RawPair<V> combine(RawPair<V> a, RawPair<V> b) noexcept {
    if (min_order(a.value(), b.value())) return a;
    if (min_order(b.value(), a.value())) return b;
    return b.index() < a.index() ? b : a;
  }
};

struct MaxLoc {
  template <typename V>
  static RawPair<V> combine(RawPair<V> a, RawPair<V> b) noexcept {
    if (max_order(a.value(), b.value())) return a;
    if (max_order(b.value(), a.value())) return b;
    return b.index() < a.index() ? b : a;
  }
};

template <typename Elements, typename Operation>
void fold(const Operands& operands, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) {
    typename Elements::Value value = Elements::load(operands.sources[0], i, is_wide(operands.wide_sources, 0));
    for (int s = 1; s < operands.source_count; ++s) {
      value = Operation::combine(value, Elements::load(operands.sources[s], i, is_wide(operands.wide_sources, s)));
    }
    for (int t = 0; t < operands.target_count; ++t) {
      Elements::store(operands.targets[t], i, value, has_bit(operands.wide_targets, t));
    }
  }
}

template <typename Elements>
constexpr void set_arithmetic(FoldTable& table, Type type) {
  table.set(Op::sum, type, fold<Elements, Sum>);
  table.set(Op::prod, type, fold<Elements, Prod>);
}

template <typename Elements>
constexpr void set_ordered(FoldTable& table, Type type) {
  set_arithmetic<Elements>(table, type);
  table.set(Op::min, type, fold<Elements, Min>);
  table.set(Op::max, type, fold<Elements, Max>);
}

template <typename T>
constexpr void set_integer(FoldTable& table, Type type) {
  using Elements = Plain<T>;
  set_ordered<Elements>(table, type);
  table.set(Op::band, type, fold<Elements, BitAnd>);
  table.set(Op::bor, type, fold<Elements, BitOr>);
  table.set(Op::bxor, type, fold<Elements, BitXor>);
  table.set(Op::land, type, fold<Elements, LogicalAnd>);
  table.set(Op::lor, type, fold<Elements, LogicalOr>);
  table.set(Op::lxor, type, fold<Elements, LogicalXor>);
}

template <typename V>
constexpr void set_pair(FoldTable& table, Type type) {
  table.set(Op::minloc, type, fold<Plain<RawPair<V>>, MinLoc>);
  table.set(Op::maxloc, type, fold<Plain<RawPair<V>>, MaxLoc>);
}

constexpr FoldTable make_table() {
  FoldTable table;
  set_integer<int8_t>(table, Type::i8);
  set_integer<uint8_t>(table, Type::u8);
  set_integer<int16_t>(table, Type::i16);
  set_integer<uint16_t>(table, Type::u16);
  set_integer<int32_t>(table, Type::i32);
  set_integer<uint32_t>(table, Type::u32);
  set_integer<int64_t>(table, Type::i64);
  set_integer<uint64_t>(table, Type::u64);
  set_ordered<SmallFloat<uint16_t, f16_to_f32, f32_to_f16>>(table, Type::f16);
  set_ordered<SmallFloat<uint16_t, bf16_to_f32, f32_to_bf16>>(table, Type::bf16);
  set_ordered<Plain<float>>(table, Type::f32);
  set_ordered<Plain<double>>(table, Type::f64);
  set_arithmetic<Plain<std::complex<float>>>(table, Type::cf32);
  set_arithmetic<Plain<std::complex<double>>>(table, Type::cf64);
  set_pair<int16_t>(table, Type::i16_i32);
  set_pair<int32_t>(table, Type::i32_i32);
  set_pair<int64_t>(table, Type::i64_i32);
  set_pair<float>(table, Type::f32_i32);
  set_pair<double>(table, Type::f64_i32);
  for (const Op op : {Op::sum, Op::max, Op::bor, Op::lor}) table.set(op, Type::boolean, fold<Truth, LogicalOr>);
  for (const Op op : {Op::prod, Op::min, Op::band, Op::land}) table.set(op, Type::boolean, fold<Truth, LogicalAnd>);
  for (const Op op : {Op::bxor, Op::lxor}) table.set(op, Type::boolean, fold<Truth, LogicalXor>);
  set_ordered<SmallFloat<uint8_t, e4m3_to_f32, f32_to_e4m3>>(table, Type::f8e4m3);
  set_ordered<SmallFloat<uint8_t, e5m2_to_f32, f32_to_e5m2>>(table, Type::f8e5m2);
  return table;
}

}  // namespace

constinit const FoldTable kReferenceTable = make_table();

}  // namespace torii::kernels
