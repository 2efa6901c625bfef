// SPDX-License-Identifier: Apache-2.0
// f16 and bf16: all 65536 values in both directions, every tie between neighbours and both sides of it, in the scalar
// functions and through the kernels of every ISA.
#include "reduce_kernels/float16.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "reduce_kernels/kernels.hpp"

namespace torii::kernels {
namespace {

/// A format by its definition: sign, `exponent_bits`, `mantissa_bits`.
struct Format {
  Type type;
  int exponent_bits;
  int mantissa_bits;

  uint16_t infinity() const { return static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits); }
  bool is_nan(uint16_t bits) const { return (bits & 0x7fff) > infinity(); }

  /// The value in exact arithmetic (double holds all of both formats and their midpoints). What follows the largest
  /// finite value is taken as the next power of two: that is where rounding to infinity begins to be measured from.
  double value(uint16_t bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (bits & 0x7fff) >> mantissa_bits;
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    const double magnitude = exponent == 0
                                 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                 : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }
};

constexpr Format kFormats[] = {{Type::f16, 5, 10}, {Type::bf16, 8, 7}};

float widen(Type type, uint16_t bits) { return type == Type::f16 ? f16_to_f32(bits) : bf16_to_f32(bits); }
uint16_t narrow(Type type, float value) { return type == Type::f16 ? f32_to_f16(value) : f32_to_bf16(value); }

/// A float and the 16 bits that it has to become.
struct Rounding {
  float from;
  uint16_t to;
};

/// For all neighbours: the tie between them, which goes to the even one, and the floats next to the tie.
std::vector<Rounding> roundings(const Format& format) {
  std::vector<Rounding> all;
  for (uint16_t low = 0; low < format.infinity(); ++low) {
    const auto high = static_cast<uint16_t>(low + 1);
    const auto even = static_cast<uint16_t>(low % 2 == 0 ? low : high);
    const auto tie = static_cast<float>((format.value(low) + format.value(high)) / 2);
    EXPECT_EQ(tie, (format.value(low) + format.value(high)) / 2) << "a tie is exact in float";
    const float below = std::nextafter(tie, 0.0f);
    const float above = std::nextafter(tie, std::numeric_limits<float>::infinity());
    for (const uint16_t sign : {uint16_t{0}, uint16_t{0x8000}}) {
      const auto signed_bits = [sign](uint16_t bits) { return static_cast<uint16_t>(bits | sign); };
      const auto signed_float = [sign](float value) { return sign == 0 ? value : -value; };
      all.push_back({signed_float(tie), signed_bits(even)});
      all.push_back({signed_float(below), signed_bits(low)});
      all.push_back({signed_float(above), signed_bits(high)});
    }
  }
  const auto infinity = format.infinity();
  all.push_back({std::numeric_limits<float>::infinity(), infinity});
  all.push_back({std::numeric_limits<float>::max(), infinity});
  all.push_back({std::numeric_limits<float>::lowest(), static_cast<uint16_t>(infinity | 0x8000)});
  return all;
}

/// Floats that are NaN, with payloads in the high and in the low bits only, quiet and signalling, of both signs.
std::vector<float> nans() {
  std::vector<float> all;
  for (const uint32_t bits :
       {0x7fc00000u, 0x7f800001u, 0x7fbfffffu, 0x7fffffffu, 0x7f801000u, 0xffc00000u, 0xff800001u}) {
    all.push_back(std::bit_cast<float>(bits));
  }
  return all;
}

std::vector<uint16_t> all_bits() {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  return all;
}

/// A fold of one source: what the kernels do to convert. `op` must not matter.
template <typename From, typename To>
std::vector<To> convert(FoldFn fold, const std::vector<From>& from, bool wide_source, bool wide_target) {
  std::vector<To> to(from.size());
  const void* source = from.data();
  void* target = to.data();
  Operands operands;
  operands.sources = &source;
  operands.source_count = 1;
  operands.targets = &target;
  operands.target_count = 1;
  const uint8_t wide = 1;
  operands.wide_sources = wide_source ? &wide : nullptr;
  operands.wide_targets = wide_target ? 1 : 0;
  fold(operands, from.size());
  return to;
}

TEST(Float16, AllValuesWidenExactly) {
  for (const Format& format : kFormats) {
    for (const uint16_t bits : all_bits()) {
      const float value = widen(format.type, bits);
      if (format.is_nan(bits)) {
        ASSERT_TRUE(std::isnan(value)) << bits;
      } else if ((bits & 0x7fff) == format.infinity()) {
        ASSERT_TRUE(std::isinf(value) && std::signbit(value) == ((bits & 0x8000) != 0)) << bits;
      } else {
        ASSERT_EQ(value, format.value(bits)) << bits;
        ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
      }
    }
  }
}

TEST(Float16, AllValuesComeBack) {
  for (const Format& format : kFormats) {
    for (const uint16_t bits : all_bits()) {
      const uint16_t back = narrow(format.type, widen(format.type, bits));
      if (format.is_nan(bits)) {
        ASSERT_TRUE(format.is_nan(back)) << bits;
      } else {
        ASSERT_EQ(back, bits);
      }
    }
  }
}

TEST(Float16, RoundsToNearestEven) {
  for (const Format& format : kFormats) {
    for (const Rounding& rounding : roundings(format)) {
      ASSERT_EQ(narrow(format.type, rounding.from), rounding.to) << torii::name(format.type) << " " << rounding.from;
    }
    for (const float nan : nans()) {
      EXPECT_TRUE(format.is_nan(narrow(format.type, nan))) << std::bit_cast<uint32_t>(nan);
    }
  }
}

class Float16Kernels : public ::testing::TestWithParam<Isa> {};

TEST_P(Float16Kernels, ConvertAsTheScalarFunctions) {
  for (const Format& format : kFormats) {
    for (const Op op : {Op::sum, Op::prod, Op::min, Op::max}) {
      const FoldFn fold = find(op, format.type, GetParam());
      const std::vector<uint16_t> bits = all_bits();
      const auto widened = convert<uint16_t, float>(fold, bits, false, true);
      for (size_t i = 0; i < bits.size(); ++i) {
        const float expected = widen(format.type, bits[i]);
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(widened[i])) << bits[i];
        } else {
          ASSERT_EQ(std::bit_cast<uint32_t>(widened[i]), std::bit_cast<uint32_t>(expected)) << bits[i];
        }
      }
    }
  }
}

TEST_P(Float16Kernels, RoundToNearestEven) {
  for (const Format& format : kFormats) {
    const FoldFn fold = find(Op::sum, format.type, GetParam());
    const std::vector<Rounding> expected = roundings(format);
    std::vector<float> from;
    for (const Rounding& rounding : expected) from.push_back(rounding.from);
    const auto narrowed = convert<float, uint16_t>(fold, from, true, false);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(narrowed[i], expected[i].to) << torii::name(format.type) << " " << from[i];
    }
    std::vector<float> many_nans;
    while (many_nans.size() < 200) {
      for (const float nan : nans()) many_nans.push_back(nan);
    }
    for (const uint16_t bits : convert<float, uint16_t>(fold, many_nans, true, false)) {
      ASSERT_TRUE(format.is_nan(bits)) << bits;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Float16Kernels, ::testing::ValuesIn(available_isas()),
                         [](const auto& isa) { return std::string(name(isa.param)); });

}  // namespace
}  // namespace torii::kernels
