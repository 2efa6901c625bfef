// SPDX-License-Identifier: Apache-2.0
// What the operations mean, said by examples that do not use the reference kernels; every ISA has to agree.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <vector>

#include "reduce_kernels/float16.hpp"
#include "reduce_kernels/kernels.hpp"

namespace torii::kernels {
namespace {

class Semantics : public ::testing::TestWithParam<Isa> {
 protected:
  /// Folds vectors that repeat the given elements, so that whole vectors and remainders both take part, and checks that
  /// all elements of the result are the same.
  template <typename T>
  T fold(Op op, Type type, const std::vector<T>& elements) const {
    constexpr size_t kCount = 301;
    std::vector<std::vector<T>> vectors;
    std::vector<const void*> sources;
    for (const T& element : elements) vectors.emplace_back(kCount, element);
    for (const auto& vector : vectors) sources.push_back(vector.data());
    std::vector<T> result(kCount);
    void* target = result.data();
    Operands operands;
    operands.sources = sources.data();
    operands.source_count = static_cast<int>(sources.size());
    operands.targets = &target;
    operands.target_count = 1;
    find(op, type, GetParam())(operands, kCount);
    for (const T& element : result) EXPECT_EQ(std::memcmp(&element, &result[0], sizeof(T)), 0) << name(op);
    return result[0];
  }
};

TEST_P(Semantics, SmallIntegersWrapAndDoNotSaturate) {
  EXPECT_EQ((fold<int8_t>(Op::sum, Type::i8, {127, 1})), -128);
  EXPECT_EQ((fold<uint8_t>(Op::sum, Type::u8, {255, 2})), 1);
  EXPECT_EQ((fold<int16_t>(Op::sum, Type::i16, {32767, 1})), -32768);
  EXPECT_EQ((fold<uint16_t>(Op::sum, Type::u16, {65535, 2})), 1);
  EXPECT_EQ((fold<int8_t>(Op::sum, Type::i8, {-128, -1, 1, 1})), -127);
  EXPECT_EQ((fold<int8_t>(Op::prod, Type::i8, {127, 3})), 125);
  EXPECT_EQ((fold<uint8_t>(Op::prod, Type::u8, {17, 16})), 16);
  EXPECT_EQ((fold<int16_t>(Op::prod, Type::i16, {-32768, 3})), -32768);
  EXPECT_EQ((fold<uint16_t>(Op::prod, Type::u16, {65535, 65535})), 1);
}

TEST_P(Semantics, LargeIntegersWrap) {
  EXPECT_EQ((fold<int32_t>(Op::sum, Type::i32, {INT32_MAX, 1})), INT32_MIN);
  EXPECT_EQ((fold<uint32_t>(Op::sum, Type::u32, {UINT32_MAX, 2})), 1u);
  EXPECT_EQ((fold<int64_t>(Op::sum, Type::i64, {INT64_MAX, 1})), INT64_MIN);
  EXPECT_EQ((fold<uint64_t>(Op::prod, Type::u64, {1ull << 63, 3})), 1ull << 63);
  EXPECT_EQ((fold<int64_t>(Op::prod, Type::i64, {-3000000000, 3000000000, 2})), 446744073709551616);
}

TEST_P(Semantics, IntegersAreOrderedBySign) {
  EXPECT_EQ((fold<int8_t>(Op::min, Type::i8, {1, -1})), -1);
  EXPECT_EQ((fold<uint8_t>(Op::min, Type::u8, {1, 255})), 1);
  EXPECT_EQ((fold<int64_t>(Op::max, Type::i64, {INT64_MIN, -1, -2})), -1);
  EXPECT_EQ((fold<uint64_t>(Op::max, Type::u64, {1, UINT64_MAX, 3})), UINT64_MAX);
}

TEST_P(Semantics, BitsAndTruth) {
  EXPECT_EQ((fold<uint8_t>(Op::band, Type::u8, {0xf3, 0x3f})), 0x33);
  EXPECT_EQ((fold<int16_t>(Op::bor, Type::i16, {0x100, 0x001, 0x010})), 0x111);
  EXPECT_EQ((fold<uint64_t>(Op::bxor, Type::u64, {0xff, 0x0f, 0xf0})), 0u);
  EXPECT_EQ((fold<int32_t>(Op::land, Type::i32, {2, -7})), 1);
  EXPECT_EQ((fold<int32_t>(Op::land, Type::i32, {2, 0, 5})), 0);
  EXPECT_EQ((fold<uint8_t>(Op::lor, Type::u8, {0, 128})), 1);
  EXPECT_EQ((fold<int64_t>(Op::lor, Type::i64, {0, 0})), 0);
  EXPECT_EQ((fold<int16_t>(Op::lxor, Type::i16, {2, 4})), 0);
  EXPECT_EQ((fold<int16_t>(Op::lxor, Type::i16, {2, 4, -1})), 1);
}

template <typename T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

TEST_P(Semantics, NanWinsMinAndMax) {
  for (const Op op : {Op::min, Op::max}) {
    EXPECT_TRUE(std::isnan(fold<float>(op, Type::f32, {kNan<float>, 1})));
    EXPECT_TRUE(std::isnan(fold<float>(op, Type::f32, {1, -kNan<float>})));
    EXPECT_TRUE(std::isnan(fold<double>(op, Type::f64, {-1, kNan<double>, 5})));
    EXPECT_TRUE(std::isnan(fold<double>(op, Type::f64, {std::numeric_limits<double>::infinity(), -kNan<double>})));
    for (const uint16_t nan : std::vector<uint16_t>{0x7e00, 0xfe00, 0x7c01, 0xffff}) {
      EXPECT_GT((fold<uint16_t>(op, Type::f16, {0x3c00, nan})) & 0x7fff, 0x7c00);
      EXPECT_GT((fold<uint16_t>(op, Type::f16, {nan, 0xfc00, 0x7c00})) & 0x7fff, 0x7c00);
    }
    for (const uint16_t nan : std::vector<uint16_t>{0x7fc0, 0xffc0, 0x7f81, 0xffff}) {
      EXPECT_GT((fold<uint16_t>(op, Type::bf16, {0x3f80, nan})) & 0x7fff, 0x7f80);
      EXPECT_GT((fold<uint16_t>(op, Type::bf16, {nan, 0xff80, 0x7f80})) & 0x7fff, 0x7f80);
    }
  }
}

TEST_P(Semantics, NegativeZeroIsSmallerThanPositiveZero) {
  for (const bool negative_first : {false, true}) {
    const float f = negative_first ? -0.0f : 0.0f;
    EXPECT_TRUE(std::signbit(fold<float>(Op::min, Type::f32, {f, -f})));
    EXPECT_FALSE(std::signbit(fold<float>(Op::max, Type::f32, {f, -f})));
    const double d = f;
    EXPECT_TRUE(std::signbit(fold<double>(Op::min, Type::f64, {d, -d})));
    EXPECT_FALSE(std::signbit(fold<double>(Op::max, Type::f64, {d, -d})));
    const uint16_t h = negative_first ? 0x8000 : 0;
    const auto other = static_cast<uint16_t>(h ^ 0x8000);
    for (const Type type : {Type::f16, Type::bf16}) {
      EXPECT_EQ((fold<uint16_t>(Op::min, type, {h, other})), 0x8000);
      EXPECT_EQ((fold<uint16_t>(Op::max, type, {h, other})), 0);
    }
  }
}

TEST_P(Semantics, FloatsFoldFromTheLeft) {
  // (1e8 + 1) + -1e8 loses the 1 in float; any other order keeps it.
  EXPECT_EQ((fold<float>(Op::sum, Type::f32, {1e8f, 1, -1e8f})), 0.0f);
  EXPECT_EQ((fold<float>(Op::sum, Type::f32, {1e8f, -1e8f, 1})), 1.0f);
  EXPECT_EQ((fold<double>(Op::sum, Type::f64, {1e16, 1, -1e16, 1})), 1.0);
}

TEST_P(Semantics, SixteenBitFloatsAreRoundedOnce) {
  // 2048 + 1 is a tie in f16 that goes back to 2048 when every addition rounds; once at the end gives 2050.
  const uint16_t f16_2048 = f32_to_f16(2048), f16_one = f32_to_f16(1);
  EXPECT_EQ((fold<uint16_t>(Op::sum, Type::f16, {f16_2048, f16_one, f16_one})), f32_to_f16(2050));
  const uint16_t bf16_256 = f32_to_bf16(256), bf16_one = f32_to_bf16(1);
  EXPECT_EQ((fold<uint16_t>(Op::sum, Type::bf16, {bf16_256, bf16_one, bf16_one})), f32_to_bf16(258));
  // Rounded, not cut: 259 is a tie between 258 and 260, whose mantissa is even.
  EXPECT_EQ((fold<uint16_t>(Op::sum, Type::bf16, {bf16_256, bf16_one, bf16_one, bf16_one})), f32_to_bf16(260));
}

TEST_P(Semantics, ComplexProductRoundsEveryOperation) {
  using Complex = std::complex<float>;
  // With a fused multiply-add the real part would be the rounding error of the square instead of zero.
  const float x = 1 + 0x1p-12f;
  const Complex result = fold<Complex>(Op::prod, Type::cf32, {{x, x}, {x, x}});
  EXPECT_EQ(result.real(), 0.0f);
  EXPECT_EQ(result.imag(), 2 * (x * x));
  // The formula does not repair infinities as the C++ library does.
  const float infinity = std::numeric_limits<float>::infinity();
  const Complex raw = fold<Complex>(Op::prod, Type::cf32, {{infinity, infinity}, {1, 1}});
  EXPECT_TRUE(std::isnan(raw.real()));
  EXPECT_EQ(raw.imag(), infinity);
  EXPECT_EQ((fold<std::complex<double>>(Op::sum, Type::cf64, {{1, 2}, {3, 4}, {5, 6}})), std::complex<double>(9, 12));
}

template <typename V>
bool same(const Pair<V>& pair, V value, int32_t index) {
  return std::memcmp(&pair.value, &value, sizeof value) == 0 && pair.index == index;
}

TEST_P(Semantics, MinlocAndMaxlocTakeTheSmallerIndexOnTies) {
  using Int = Pair<int32_t>;
  EXPECT_TRUE(same(fold<Int>(Op::minloc, Type::i32_i32, {{5, 0}, {-3, 9}, {-3, 4}, {7, 1}}), -3, 4));
  EXPECT_TRUE(same(fold<Int>(Op::maxloc, Type::i32_i32, {{5, 3}, {5, -2}, {4, -9}}), 5, -2));
  using Short = Pair<int16_t>;
  EXPECT_TRUE(same(fold<Short>(Op::minloc, Type::i16_i32, {{1, 0}, {-1, 70000}}), int16_t{-1}, 70000));
  using Long = Pair<int64_t>;
  EXPECT_TRUE(same(fold<Long>(Op::maxloc, Type::i64_i32, {{1ll << 40, 7}, {1ll << 40, 3}}), int64_t{1} << 40, 3));
  using Float = Pair<float>;
  EXPECT_TRUE(same(fold<Float>(Op::minloc, Type::f32_i32, {{0.0f, 1}, {-0.0f, 5}}), -0.0f, 5));
  EXPECT_TRUE(same(fold<Float>(Op::maxloc, Type::f32_i32, {{-0.0f, 1}, {0.0f, 5}}), 0.0f, 5));
  using Double = Pair<double>;
  EXPECT_TRUE(same(fold<Double>(Op::minloc, Type::f64_i32, {{-1.5, 4}, {-1.5, 2}, {3, 0}}), -1.5, 2));
}

TEST_P(Semantics, MinlocAndMaxlocPreferNanAndThenTheSmallerIndex) {
  for (const Op op : {Op::minloc, Op::maxloc}) {
    const auto f = fold<Pair<float>>(op, Type::f32_i32, {{1, 0}, {kNan<float>, 8}, {-kNan<float>, 3}, {-1, 1}});
    EXPECT_TRUE(std::isnan(f.value));
    EXPECT_EQ(f.index, 3);
    const auto d = fold<Pair<double>>(op, Type::f64_i32, {{kNan<double>, 2}, {0, 0}, {kNan<double>, 6}});
    EXPECT_TRUE(std::isnan(d.value));
    EXPECT_EQ(d.index, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Semantics, ::testing::ValuesIn(available_isas()),
                         [](const auto& isa) { return std::string(name(isa.param)); });

}  // namespace
}  // namespace torii::kernels
