// SPDX-License-Identifier: Apache-2.0
// 8-bit floats: all 256 values, every tie between neighbours and both sides of it, overflow, and all pairs of values
// under all operations, against an oracle that knows the values of the formats only.
#include "reduce_kernels/float8.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "reduce_kernels/kernels.hpp"

namespace torii::kernels {
namespace {

/// A format by the tables of its specification.
struct Format8 {
  Type type;
  int mantissa_bits;
  int bias;
  uint8_t largest;   ///< the last finite magnitude
  uint8_t overflow;  ///< what is larger

  bool is_nan(uint8_t bits) const {
    const int magnitude = bits & 0x7f;
    return type == Type::f8e4m3 ? magnitude == 0x7f : magnitude > 0x7c;
  }
  bool is_infinity(uint8_t bits) const { return type == Type::f8e5m2 && (bits & 0x7f) == 0x7c; }

  /// Of a finite magnitude, or of the one after the largest as if there were another number.
  double value(int magnitude) const {
    const int exponent = magnitude >> mantissa_bits;
    const int mantissa = magnitude & ((1 << mantissa_bits) - 1);
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  }

  /// value() of all magnitudes, made once: the oracle is asked a million times.
  const std::vector<double>& values() const {
    static const std::array<std::vector<double>, 2> all = [] {
      std::array<std::vector<double>, 2> made;
      for (int magnitude = 0; magnitude < 128; ++magnitude) {
        made[0].push_back(Format8{Type::f8e4m3, 3, 7, 0, 0}.value(magnitude));
        made[1].push_back(Format8{Type::f8e5m2, 2, 15, 0, 0}.value(magnitude));
      }
      return made;
    }();
    return all[type == Type::f8e4m3 ? 0 : 1];
  }

  double widened(uint8_t bits) const {
    if (is_nan(bits)) return std::numeric_limits<double>::quiet_NaN();
    const double magnitude = is_infinity(bits) ? std::numeric_limits<double>::infinity() : values()[bits & 0x7f];
    return (bits & 0x80) != 0 ? -magnitude : magnitude;
  }

  /// The nearest number, of two equally near ones the even one.
  uint8_t narrowed(double number) const {
    const uint8_t sign = std::signbit(number) ? 0x80 : 0;
    if (std::isnan(number)) return 0x7f;
    const double wanted = std::fabs(number);
    const double tie = (value(largest) + value(largest + 1)) / 2;
    if (wanted > tie || (wanted == tie && largest % 2 != 0)) return overflow | sign;
    // The numbers ascend with their bits, so the nearest is the last one not above `wanted` or the next.
    int low = 0;
    while (low < largest && values()[static_cast<size_t>(low) + 1] <= wanted) ++low;
    const double below = wanted - values()[static_cast<size_t>(low)];
    const double above = low == largest ? below + 1 : values()[static_cast<size_t>(low) + 1] - wanted;
    const int best = below < above || (below == above && low % 2 == 0) ? low : low + 1;
    return static_cast<uint8_t>(best | sign);
  }
  bool same(uint8_t a, uint8_t b) const { return a == b || (is_nan(a) && is_nan(b)); }
};

constexpr Format8 kFormats8[] = {{Type::f8e4m3, 3, 7, 0x7e, 0x7f}, {Type::f8e5m2, 2, 15, 0x7b, 0x7c}};

float widen8(Type type, uint8_t bits) { return type == Type::f8e4m3 ? e4m3_to_f32(bits) : e5m2_to_f32(bits); }
uint8_t narrow8(Type type, float value) { return type == Type::f8e4m3 ? f32_to_e4m3(value) : f32_to_e5m2(value); }

/// Ties between all neighbours, the floats beside them, and what overflows or is nothing; of both signs.
std::vector<float> interesting(const Format8& format) {
  std::vector<float> all = {0,
                            464,
                            480,
                            57344,
                            61440,
                            65536,
                            1e30f,
                            1e-30f,
                            std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::infinity()};
  for (int low = 0; low <= format.largest; ++low) {
    const auto tie = static_cast<float>((format.value(low) + format.value(low + 1)) / 2);
    for (const float number : {static_cast<float>(format.value(low)), tie, std::nextafter(tie, 0.0f),
                               std::nextafter(tie, std::numeric_limits<float>::infinity())}) {
      all.push_back(number);
    }
  }
  for (const uint32_t nan : {0x7fc00000u, 0x7f800001u, 0x7fbfffffu, 0x7fffffffu}) {
    all.push_back(std::bit_cast<float>(nan));
  }
  const size_t positive = all.size();
  for (size_t i = 0; i < positive; ++i) all.push_back(-all[i]);
  return all;
}

TEST(Float8, LargestNumbersAreThoseOfTheSpecification) {
  EXPECT_EQ(e4m3_to_f32(0x7e), 448);
  EXPECT_EQ(e5m2_to_f32(0x7b), 57344);
  EXPECT_EQ(e4m3_to_f32(0x01), 0x1p-9f);
  EXPECT_EQ(e5m2_to_f32(0x01), 0x1p-16f);
  EXPECT_EQ(f32_to_e4m3(464), 0x7e) << "a tie goes to the even one";
  EXPECT_EQ(f32_to_e4m3(std::nextafter(464.0f, 500.0f)), 0x7f);
  EXPECT_EQ(f32_to_e4m3(-std::numeric_limits<float>::infinity()), 0xff);
  EXPECT_EQ(f32_to_e5m2(61440), 0x7c);
  EXPECT_EQ(f32_to_e5m2(std::nextafter(61440.0f, 0.0f)), 0x7b);
}

TEST(Float8, AllValuesWidenExactlyAndComeBack) {
  for (const Format8& format : kFormats8) {
    for (int i = 0; i < 256; ++i) {
      const auto bits = static_cast<uint8_t>(i);
      const float value = widen8(format.type, bits);
      if (format.is_nan(bits)) {
        EXPECT_TRUE(std::isnan(value)) << i;
      } else {
        EXPECT_EQ(value, format.widened(bits)) << i;
        EXPECT_EQ(std::signbit(value), i >= 128) << i;
      }
      EXPECT_TRUE(format.same(narrow8(format.type, value), bits)) << torii::name(format.type) << " " << i;
    }
  }
}

TEST(Float8, RoundsToNearestEven) {
  for (const Format8& format : kFormats8) {
    for (const float number : interesting(format)) {
      const uint8_t expected = format.narrowed(number);
      EXPECT_TRUE(format.same(narrow8(format.type, number), expected)) << torii::name(format.type) << " " << number;
    }
  }
}

class Float8Kernels : public ::testing::TestWithParam<Isa> {};

TEST_P(Float8Kernels, ConvertAsTheOracle) {
  for (const Format8& format : kFormats8) {
    std::vector<float> from = interesting(format);
    std::vector<uint8_t> to(from.size());
    std::vector<float> back(from.size());
    const FoldFn fold = find(Op::sum, format.type, GetParam());
    const uint8_t wide = 1;
    const void* source = from.data();
    void* target = to.data();
    fold({.sources = &source, .source_count = 1, .targets = &target, .target_count = 1, .wide_sources = &wide},
         from.size());
    source = to.data();
    target = back.data();
    fold({.sources = &source, .source_count = 1, .targets = &target, .target_count = 1, .wide_targets = 1}, to.size());
    for (size_t i = 0; i < from.size(); ++i) {
      ASSERT_TRUE(format.same(to[i], format.narrowed(from[i]))) << torii::name(format.type) << " " << from[i];
      const double expected = format.widened(to[i]);
      ASSERT_TRUE(back[i] == expected || (std::isnan(back[i]) && std::isnan(expected))) << int{to[i]};
    }
  }
}

double combined(Op op, double a, double b) {
  if (op == Op::sum) return a + b;
  if (op == Op::prod) return a * b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return (op == Op::min) == std::signbit(a) ? a : b;
  return (op == Op::min) == (a < b) ? a : b;
}

TEST_P(Float8Kernels, AllPairsAsTheOracle) {
  std::vector<uint8_t> left(65536), right(65536), out(65536);
  for (size_t i = 0; i < left.size(); ++i) {
    left[i] = static_cast<uint8_t>(i >> 8);
    right[i] = static_cast<uint8_t>(i);
  }
  for (const Format8& format : kFormats8) {
    for (const Op op : {Op::sum, Op::prod, Op::min, Op::max}) {
      const void* sources[] = {left.data(), right.data()};
      void* target = out.data();
      find(op, format.type, GetParam())({sources, 2, &target, 1}, out.size());
      for (size_t i = 0; i < out.size(); ++i) {
        // Sums and products of two such numbers are exact in float or far from every tie, so one rounding is enough.
        const double exact = combined(op, format.widened(left[i]), format.widened(right[i]));
        ASSERT_TRUE(format.same(out[i], format.narrowed(static_cast<float>(exact))))
            << name(op) << " " << torii::name(format.type) << " of " << int{left[i]} << " and " << int{right[i]}
            << " is " << int{out[i]};
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Float8Kernels, ::testing::ValuesIn(available_isas()),
                         [](const auto& isa) { return std::string(name(isa.param)); });

}  // namespace
}  // namespace torii::kernels
