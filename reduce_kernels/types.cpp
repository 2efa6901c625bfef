// SPDX-License-Identifier: Apache-2.0
// Tables of the operations' and types' names and sizes.
#include "reduce_kernels/types.hpp"

#include <array>

namespace torii {
namespace {

struct TypeEntry {
  const char* name;
  size_t size_bytes;
};

constexpr std::array<const char*, kOpCount> kOpNames = {"sum",  "prod", "min",  "max",    "band",   "bor", "bxor",
                                                        "land", "lor",  "lxor", "minloc", "maxloc", "user"};

constexpr std::array<TypeEntry, kTypeCount> kTypes = {{
    {"i8", 1},       {"u8", 1},    {"i16", 2},     {"u16", 2},     {"i32", 4},      {"u32", 4},
    {"i64", 8},      {"u64", 8},   {"f16", 2},     {"bf16", 2},    {"f32", 4},      {"f64", 8},
    {"cf32", 8},     {"cf64", 16}, {"i16_i32", 8}, {"i32_i32", 8}, {"i64_i32", 16}, {"f32_i32", 8},
    {"f64_i32", 16}, {"bool", 1},  {"f8e4m3", 1},  {"f8e5m2", 1},
}};

struct Alias {
  std::string_view name;
  Type type;
};

constexpr std::array<Alias, 10> kAliases = {{
    {"int8", Type::i8},
    {"uint8", Type::u8},
    {"int32", Type::i32},
    {"uint32", Type::u32},
    {"int64", Type::i64},
    {"uint64", Type::u64},
    {"half", Type::f16},
    {"float", Type::f32},
    {"double", Type::f64},
    {"bfloat16", Type::bf16},
}};

}  // namespace

size_t size_of(Type type) noexcept { return kTypes[static_cast<size_t>(type)].size_bytes; }

size_t wire_size(Type type, bool wide) noexcept { return wide && is_small_float(type) ? sizeof(float) : size_of(type); }

bool is_small_float(Type type) noexcept { return widening_of(type) != Widening::none; }

Widening widening_of(Type type) noexcept {
  if (type == Type::f16 || type == Type::bf16) return Widening::twice;
  return type == Type::f8e4m3 || type == Type::f8e5m2 ? Widening::fourfold : Widening::none;
}

const char* name(Op op) noexcept { return kOpNames[static_cast<size_t>(op)]; }

const char* name(Type type) noexcept { return kTypes[static_cast<size_t>(type)].name; }

std::optional<Op> parse_op(std::string_view text) noexcept {
  for (size_t i = 0; i < kOpNames.size(); ++i) {
    if (text == kOpNames[i]) return static_cast<Op>(i);
  }
  return std::nullopt;
}

std::optional<Type> parse_type(std::string_view text) noexcept {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (text == kTypes[i].name) return static_cast<Type>(i);
  }
  for (const Alias& alias : kAliases) {
    if (text == alias.name) return alias.type;
  }
  return std::nullopt;
}

}  // namespace torii
