// SPDX-License-Identifier: Apache-2.0
// The operations and element types of reductions: their sizes, their names on command lines and in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace torii {

/// The combination of two elements. `user` stands for a function of the embedder (see kernels::UserFunction).
enum class Op : uint8_t { sum, prod, min, max, band, bor, bxor, land, lor, lxor, minloc, maxloc, user };
inline constexpr int kOpCount = 13;

/// Element types. The five from i16_i32 on are pairs (value, 32-bit index) for minloc and maxloc, laid out as the C
/// structure `struct { value v; int32_t index; }`: 8 bytes, or 16 for the 64-bit values. `boolean` is a byte of which
/// every value but 0 is true; 1 is stored. f8e4m3 and f8e5m2 are the 8-bit floats of the Open Compute Project
/// (float8.hpp).
enum class Type : uint8_t {
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f32,
  f64,
  cf32,
  cf64,
  i16_i32,
  i32_i32,
  i64_i32,
  f32_i32,
  f64_i32,
  boolean,
  f8e4m3,
  f8e5m2
};
inline constexpr int kTypeCount = 22;

/// One element of a pair type in memory, padding included.
template <typename Value>
struct Pair {
  Value value;
  int32_t index;
};
static_assert(sizeof(Pair<int16_t>) == 8 && offsetof(Pair<int16_t>, index) == 4);
static_assert(sizeof(Pair<float>) == 8 && sizeof(Pair<int32_t>) == 8);
static_assert(sizeof(Pair<double>) == 16 && sizeof(Pair<int64_t>) == 16 && offsetof(Pair<double>, index) == 8);

/// Bytes of one element in memory.
size_t size_of(Type type) noexcept;

/// Bytes of one element on the wire: small floats travel as float (4 bytes) when `wide`, everything else as in memory.
size_t wire_size(Type type, bool wide) noexcept;

/// True for the floats of 16 and 8 bits, the types that are folded in float and rounded when stored.
bool is_small_float(Type type) noexcept;

/// How many times the bytes of a vector's own type its elements take where they travel as float. `none`: nothing does.
enum class Widening : uint8_t { none = 1, twice = 2, fourfold = 4 };
/// That of a type; `none` for all that are not small floats.
Widening widening_of(Type type) noexcept;
constexpr size_t widened(size_t bytes, Widening widening) noexcept { return bytes * static_cast<size_t>(widening); }

/// Pairs of value and index.
constexpr bool is_pair(Type type) noexcept { return type >= Type::i16_i32 && type <= Type::f64_i32; }

/// Names as on the command line: "sum", "f32", "f32_i32".
const char* name(Op op) noexcept;
const char* name(Type type) noexcept;

/// The inverse of name(); nothing for an unknown name. Types are also known by the names of nccl-tests: int8, uint8,
/// int32, uint32, int64, uint64, half, float, double, bfloat16; f8e4m3 and f8e5m2 are among torii's own.
std::optional<Op> parse_op(std::string_view text) noexcept;
std::optional<Type> parse_type(std::string_view text) noexcept;

}  // namespace torii
