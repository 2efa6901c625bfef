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

/// Element types. The last five are pairs (value, 32-bit index) for minloc and maxloc, laid out as the C structure
/// `struct { value v; int32_t index; }`: 8 bytes, or 16 for the 64-bit values.
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
  f64_i32
};
inline constexpr int kTypeCount = 19;

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

/// Bytes of one element on the wire: f16 and bf16 travel as float (4 bytes) when `wide`, everything else as in memory.
size_t wire_size(Type type, bool wide) noexcept;

/// True for f16 and bf16, the types that are folded in float and rounded when stored.
bool is_float16(Type type) noexcept;

/// Names as on the command line: "sum", "f32", "f32_i32".
const char* name(Op op) noexcept;
const char* name(Type type) noexcept;

/// The inverse of name(); nothing for an unknown name. Types are also known by the names of nccl-tests: int8, uint8,
/// int32, uint32, int64, uint64, half, float, double, bfloat16.
std::optional<Op> parse_op(std::string_view text) noexcept;
std::optional<Type> parse_type(std::string_view text) noexcept;

}  // namespace torii
