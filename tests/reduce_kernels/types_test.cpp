// SPDX-License-Identifier: Apache-2.0
// Names, sizes and the look-up of kernels.
#include "reduce_kernels/types.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "reduce_kernels/kernels.hpp"

namespace torii::kernels {
namespace {

TEST(Types, EveryNameIsReadBack) {
  for (int i = 0; i < kOpCount; ++i) EXPECT_EQ(parse_op(name(static_cast<Op>(i))), static_cast<Op>(i));
  for (int i = 0; i < kTypeCount; ++i) {
    EXPECT_EQ(parse_type(torii::name(static_cast<Type>(i))), static_cast<Type>(i));
  }
  for (int i = 0; i < kIsaCount; ++i) EXPECT_EQ(parse_isa(name(static_cast<Isa>(i))), static_cast<Isa>(i));
}

TEST(Types, NamesOfNcclTestsAreUnderstood) {
  EXPECT_EQ(parse_type("int8"), Type::i8);
  EXPECT_EQ(parse_type("uint8"), Type::u8);
  EXPECT_EQ(parse_type("int32"), Type::i32);
  EXPECT_EQ(parse_type("uint32"), Type::u32);
  EXPECT_EQ(parse_type("int64"), Type::i64);
  EXPECT_EQ(parse_type("uint64"), Type::u64);
  EXPECT_EQ(parse_type("half"), Type::f16);
  EXPECT_EQ(parse_type("float"), Type::f32);
  EXPECT_EQ(parse_type("double"), Type::f64);
  EXPECT_EQ(parse_type("bfloat16"), Type::bf16);
  EXPECT_EQ(parse_type("f8e4m3"), Type::f8e4m3);
  EXPECT_EQ(parse_type("f8e5m2"), Type::f8e5m2);
}

TEST(Types, UnknownNamesAreNothing) {
  for (const char* text : {"", "Sum", "sum ", "f31", "float32", "avx1024"}) {
    EXPECT_FALSE(parse_op(text).has_value()) << text;
    EXPECT_FALSE(parse_type(text).has_value()) << text;
    EXPECT_FALSE(parse_isa(text).has_value()) << text;
  }
}

TEST(Types, SizesInMemoryAndOnTheWire) {
  EXPECT_EQ(size_of(Type::u8), 1u);
  EXPECT_EQ(size_of(Type::bf16), 2u);
  EXPECT_EQ(size_of(Type::f32), 4u);
  EXPECT_EQ(size_of(Type::cf64), 16u);
  EXPECT_EQ(size_of(Type::i16_i32), sizeof(Pair<int16_t>));
  EXPECT_EQ(size_of(Type::i32_i32), sizeof(Pair<int32_t>));
  EXPECT_EQ(size_of(Type::i64_i32), sizeof(Pair<int64_t>));
  EXPECT_EQ(size_of(Type::f32_i32), sizeof(Pair<float>));
  EXPECT_EQ(size_of(Type::f64_i32), sizeof(Pair<double>));
  for (int i = 0; i < kTypeCount; ++i) {
    const Type type = static_cast<Type>(i);
    EXPECT_EQ(wire_size(type, false), size_of(type));
    EXPECT_EQ(wire_size(type, true), is_small_float(type) ? 4u : size_of(type));
    EXPECT_EQ(wire_size(type, true), widened(size_of(type), widening_of(type)));
  }
}

TEST(Types, SmallFloatsAreThoseOf16And8Bits) {
  for (int i = 0; i < kTypeCount; ++i) {
    const Type type = static_cast<Type>(i);
    const bool is_small = type == Type::f16 || type == Type::bf16 || type == Type::f8e4m3 || type == Type::f8e5m2;
    EXPECT_EQ(is_small_float(type), is_small) << torii::name(type);
  }
}

TEST(Kernels, EveryIsaDefinesWhatTheReferenceDefines) {
  for (const Isa isa : available_isas()) {
    for (int op = 0; op < kOpCount; ++op) {
      for (int type = 0; type < kTypeCount; ++type) {
        const bool found = find(static_cast<Op>(op), static_cast<Type>(type), isa) != nullptr;
        EXPECT_EQ(found, why_not(static_cast<Op>(op), static_cast<Type>(type)) == nullptr)
            << name(static_cast<Op>(op)) << " " << torii::name(static_cast<Type>(type)) << " " << name(isa);
      }
    }
  }
}

TEST(Kernels, WhatIsNotDefinedIsExplained) {
  const auto reason = [](Op op, Type type) { return std::string(why_not(op, type)); };
  EXPECT_NE(reason(Op::user, Type::f32).find("user"), std::string::npos);
  EXPECT_NE(reason(Op::minloc, Type::f32).find("f32_i32"), std::string::npos);
  EXPECT_NE(reason(Op::sum, Type::f32_i32).find("minloc"), std::string::npos);
  EXPECT_NE(reason(Op::min, Type::cf32).find("complex"), std::string::npos);
  EXPECT_NE(reason(Op::band, Type::f64).find("integers"), std::string::npos);
  EXPECT_NE(reason(Op::land, Type::bf16).find("integers"), std::string::npos);
  EXPECT_NE(reason(Op::bxor, Type::f8e5m2).find("integers and bool"), std::string::npos);
  EXPECT_NE(reason(Op::minloc, Type::boolean).find("f32_i32"), std::string::npos);
}

TEST(Kernels, AutomaticIsOneOfTheAvailable) {
  const std::vector<Isa> isas = available_isas();
  EXPECT_EQ(isas.front(), Isa::reference);
  EXPECT_EQ(isas.back(), best_isa());
  for (int op = 0; op < kOpCount; ++op) {
    for (int type = 0; type < kTypeCount; ++type) {
      const Isa isa = resolve(Isa::automatic, static_cast<Op>(op), static_cast<Type>(type));
      EXPECT_NE(std::find(isas.begin(), isas.end(), isa), isas.end());
      EXPECT_EQ(find(static_cast<Op>(op), static_cast<Type>(type)),
                find(static_cast<Op>(op), static_cast<Type>(type), isa));
    }
  }
  EXPECT_EQ(resolve(Isa::reference, Op::sum, Type::f32), Isa::reference);
}

TEST(Kernels, AnIsaThatIsNotHereHasNoKernels) {
  const std::vector<Isa> isas = available_isas();
  for (const Isa isa : {Isa::sse4, Isa::avx2, Isa::avx512, Isa::neon, Isa::sve}) {
    const bool available = std::find(isas.begin(), isas.end(), isa) != isas.end();
    EXPECT_EQ(find(Op::sum, Type::f32, isa) != nullptr, available) << name(isa);
    EXPECT_EQ(vector_bytes(isa) != 0, available) << name(isa);
  }
}

}  // namespace
}  // namespace torii::kernels
