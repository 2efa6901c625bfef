// SPDX-License-Identifier: Apache-2.0
// What the perf binaries know about collectives, operations and types: names, fields in memory, what goes with what.
#pragma once

#include <torii/torii.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/collective_shape.hpp"

namespace torii::perf {

/// How the bits of a field are read.
enum class Kind : uint8_t { integer, truth, f8e4m3, f8e5m2, f16, bf16, f32, f64 };

/// One number inside an element: a complex has two, a pair has a value and an index. Bytes between fields are padding.
struct Field {
  Kind kind;
  uint8_t offset_bytes;
  uint8_t size_bytes;
};

struct TypeInfo {
  torii_type type;
  const char* name;
  size_t size_bytes;
  int field_count;
  std::array<Field, 2> fields;
};

struct OpInfo {
  torii_op op;
  const char* name;
};

std::span<const TypeInfo> all_types();
std::span<const OpInfo> all_ops();

/// The algorithms that the library has, in the order of its catalogue.
std::span<const std::string_view> all_algorithms();

const TypeInfo& info(torii_type type);
const char* name(torii_op op);
const char* name(torii_collective collective);

/// Types are known by torii's names and those of nccl-tests (float, half, int8, ...).
std::optional<torii_type> parse_type(std::string_view text);
std::optional<torii_op> parse_op(std::string_view text);
std::optional<torii_collective> parse_collective(std::string_view text);

/// Pairs of value and index.
constexpr bool is_pair(torii_type type) { return type >= TORII_I16_I32 && type <= TORII_F64_I32; }

/// True for minloc and maxloc on pairs, sum and prod on complex, bitwise and logical operations on integers, and so on.
bool is_defined(torii_op op, torii_type type);

/// The same in that collective: a scan has no average.
inline bool is_defined(torii_collective c, torii_op op, torii_type type) {
  return is_defined(op, type) && !(op == TORII_AVG && is_prefix(c));
}

/// The words between the commas.
std::vector<std::string> split_list(const std::string& text);

/// "8", "64K", "32M", "1G" (1024) in bytes, at least 1. Throws Failure naming `flag` and the value.
size_t parse_size(const std::string& flag, const std::string& text);

}  // namespace torii::perf
