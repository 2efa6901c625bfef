// SPDX-License-Identifier: Apache-2.0
// Tables of names and of the fields of every type.
#include "perf/common/names.hpp"

#include <sstream>
#include <utility>

#include "perf/common/failure.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

constexpr TypeInfo whole(torii_type type, const char* name, Kind kind, uint8_t bytes) {
  return {type, name, bytes, 1, {{{kind, 0, bytes}, {}}}};
}
constexpr TypeInfo complex(torii_type type, const char* name, Kind kind, uint8_t bytes) {
  return {type, name, size_t{2} * bytes, 2, {{{kind, 0, bytes}, {kind, bytes, bytes}}}};
}
constexpr TypeInfo pair(torii_type type, const char* name, Kind kind, uint8_t bytes) {
  const uint8_t index_at = bytes < 4 ? 4 : bytes;
  return {type, name, size_t{2} * index_at, 2, {{{kind, 0, bytes}, {Kind::integer, index_at, 4}}}};
}

constexpr std::array kTypes = {
    whole(TORII_I8, "i8", Kind::integer, 1),
    whole(TORII_U8, "u8", Kind::integer, 1),
    whole(TORII_I16, "i16", Kind::integer, 2),
    whole(TORII_U16, "u16", Kind::integer, 2),
    whole(TORII_I32, "i32", Kind::integer, 4),
    whole(TORII_U32, "u32", Kind::integer, 4),
    whole(TORII_I64, "i64", Kind::integer, 8),
    whole(TORII_U64, "u64", Kind::integer, 8),
    whole(TORII_F16, "f16", Kind::f16, 2),
    whole(TORII_BF16, "bf16", Kind::bf16, 2),
    whole(TORII_F32, "f32", Kind::f32, 4),
    whole(TORII_F64, "f64", Kind::f64, 8),
    complex(TORII_CF32, "cf32", Kind::f32, 4),
    complex(TORII_CF64, "cf64", Kind::f64, 8),
    pair(TORII_I16_I32, "i16_i32", Kind::integer, 2),
    pair(TORII_I32_I32, "i32_i32", Kind::integer, 4),
    pair(TORII_I64_I32, "i64_i32", Kind::integer, 8),
    pair(TORII_F32_I32, "f32_i32", Kind::f32, 4),
    pair(TORII_F64_I32, "f64_i32", Kind::f64, 8),
    whole(TORII_BOOL, "bool", Kind::truth, 1),
    whole(TORII_FLOAT8_E4M3, "f8e4m3", Kind::f8e4m3, 1),
    whole(TORII_FLOAT8_E5M2, "f8e5m2", Kind::f8e5m2, 1),
};
static_assert(kTypes.size() == TORII_FLOAT8_E5M2 + 1 && kTypes[TORII_F32].type == TORII_F32);

constexpr std::array<std::pair<std::string_view, torii_type>, 10> kAliases = {{
    {"int8", TORII_I8},
    {"uint8", TORII_U8},
    {"int32", TORII_I32},
    {"uint32", TORII_U32},
    {"int64", TORII_I64},
    {"uint64", TORII_U64},
    {"half", TORII_F16},
    {"float", TORII_F32},
    {"double", TORII_F64},
    {"bfloat16", TORII_BF16},
}};

constexpr std::array kOps = {
    OpInfo{TORII_SUM, "sum"},   OpInfo{TORII_PROD, "prod"},     OpInfo{TORII_MIN, "min"},
    OpInfo{TORII_MAX, "max"},   OpInfo{TORII_BAND, "band"},     OpInfo{TORII_BOR, "bor"},
    OpInfo{TORII_BXOR, "bxor"}, OpInfo{TORII_LAND, "land"},     OpInfo{TORII_LOR, "lor"},
    OpInfo{TORII_LXOR, "lxor"}, OpInfo{TORII_MINLOC, "minloc"}, OpInfo{TORII_MAXLOC, "maxloc"},
    OpInfo{TORII_AVG, "avg"},
};
// There is no user operation here.
static_assert(kOps.size() == TORII_AVG && kOps[TORII_BXOR].op == TORII_BXOR);

}  // namespace

std::span<const std::string_view> all_algorithms() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> result;
    while (const char* name = torii_algorithm_name(static_cast<int>(result.size()))) result.emplace_back(name);
    return result;
  }();
  return names;
}

std::span<const TypeInfo> all_types() { return kTypes; }
std::span<const OpInfo> all_ops() { return kOps; }

const TypeInfo& info(torii_type type) { return kTypes.at(type); }
const char* name(torii_op op) { return kOps.at(op == TORII_AVG ? kOps.size() - 1 : static_cast<size_t>(op)).name; }
const char* name(torii_collective collective) { return torii_collective_name(collective); }

std::optional<torii_type> parse_type(std::string_view text) {
  for (const TypeInfo& type : kTypes) {
    if (text == type.name) return type.type;
  }
  for (const auto& [alias, type] : kAliases) {
    if (text == alias) return type;
  }
  return std::nullopt;
}

std::optional<torii_op> parse_op(std::string_view text) {
  for (const OpInfo& op : kOps) {
    if (text == op.name) return op.op;
  }
  return std::nullopt;
}

std::optional<torii_collective> parse_collective(std::string_view text) {
  for (const torii_collective collective : kAllCollectives) {
    if (text == name(collective)) return collective;
  }
  return std::nullopt;
}

bool is_defined(torii_op op, torii_type type) {
  if (is_pair(type) || op == TORII_MINLOC || op == TORII_MAXLOC) {
    return is_pair(type) && (op == TORII_MINLOC || op == TORII_MAXLOC);
  }
  const TypeInfo& entry = info(type);
  if (op == TORII_AVG) return entry.fields[0].kind != Kind::truth;
  if (entry.field_count == 2) return op == TORII_SUM || op == TORII_PROD;
  return op <= TORII_MAX || entry.fields[0].kind == Kind::integer || entry.fields[0].kind == Kind::truth;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream list(text);
  for (std::string word; std::getline(list, word, ',');) words.push_back(word);
  return words;
}

size_t parse_size(const std::string& flag, const std::string& text) {
  const auto refuse = [&](const char* why) { throw Failure(kBadCommandLine, flag + " '" + text + "' " + why); };
  const auto bytes = parse_bytes(text);
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (!bytes && digits > 0 && parse_bytes("1" + text.substr(digits))) refuse("overflows: a size has at most 64 bits");
  if (!bytes) refuse("is not a size: write digits and K, M or G, like 64K");
  if (*bytes == 0) refuse("must be at least 1 byte");
  return *bytes;
}

}  // namespace torii::perf
