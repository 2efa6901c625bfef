// SPDX-License-Identifier: Apache-2.0
// Elements come from a table for each type: to compute each one took a fifth of the time of all histories.
#include "tools/torii-sim/faults/elements.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "reduce_kernels/kernels.hpp"

namespace torii::faults {
namespace {

/// No length of a vector or block is a multiple of this prime, so a block in the place of another one is wrong.
constexpr std::size_t kPeriod = 8191;

constexpr torii_type kTypes[] = {TORII_U8,  TORII_I32,  TORII_I64, TORII_I16,  TORII_U64,     TORII_F16,
                                 TORII_F32, TORII_BF16, TORII_F64, TORII_CF32, TORII_I32_I32, TORII_F32_I32};

/// Small whole numbers but 0: all sums of them are exact, in every type.
int small_number(std::uint64_t drawn) {
  return (drawn & 1) != 0 ? static_cast<int>(1 + drawn / 2 % 8) : -static_cast<int>(1 + drawn / 2 % 8);
}
/// Powers of two: all products of them are exact.
float power_of_two(std::uint64_t drawn) {
  constexpr float kPowers[] = {1, 2, 0.5F, -1, -2, -0.5F, 1, -1};
  return kPowers[drawn % std::size(kPowers)];
}

/// For a number that has no more than 8 bits.
std::uint16_t bf16_of(float number) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return static_cast<std::uint16_t>(bits >> 16);
}
std::uint16_t f16_of(float number) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  const std::uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
}

template <class T>
void append(std::vector<std::byte>& to, T value) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof(value));
}

void append_element(std::vector<std::byte>& table, torii_type type, bool is_product, std::uint64_t drawn) {
  const float number = is_product ? power_of_two(drawn) : static_cast<float>(small_number(drawn));
  switch (type) {
    case TORII_F16:
      return append(table, f16_of(number));
    case TORII_BF16:
      return append(table, bf16_of(number));
    case TORII_F32:
      return append(table, number);
    case TORII_F64:
      return append(table, static_cast<double>(number));
    case TORII_CF32:
      append(table, number);
      return append(table, static_cast<float>(small_number(drawn >> 8)));
    case TORII_F32_I32:
      append(table, number);
      return append(table, static_cast<std::int32_t>(drawn >> 32));
    default:
      const auto* const bytes = reinterpret_cast<const std::byte*>(&drawn);
      table.insert(table.end(), bytes, bytes + torii_type_bytes(type));
  }
}

using Tables = std::array<std::array<std::vector<std::byte>, 2>, TORII_F64_I32 + 1>;

Tables make_tables() {
  Tables tables;
  for (const torii_type type : kTypes) {
    for (const bool is_product : {false, true}) {
      std::vector<std::byte>& table = tables[type][is_product ? 1 : 0];
      table.reserve(kPeriod * torii_type_bytes(type));
      for (std::size_t i = 0; i < kPeriod; ++i) append_element(table, type, is_product, mixed(i + kPeriod));
    }
  }
  return tables;
}

const std::vector<std::byte>& table_of(torii_type type, bool is_product) {
  static const Tables tables = make_tables();  // ranks may be threads
  return tables[type][is_product ? 1 : 0];
}

void add_numbers(const void* left, const void* right, void* out, std::size_t count, void* /*data*/) {
  const auto* const first = static_cast<const std::uint64_t*>(left);
  const auto* const second = static_cast<const std::uint64_t*>(right);
  for (std::size_t i = 0; i < count; ++i) static_cast<std::uint64_t*>(out)[i] = first[i] + second[i];
}

/// The left map first.
void compose_maps(const void* left, const void* right, void* out, std::size_t count, void* /*data*/) {
  struct Map {
    std::uint32_t factor;
    std::uint32_t summand;
  };
  static_assert(sizeof(Map) == sizeof(std::uint64_t));
  const auto* const first = static_cast<const Map*>(left);
  const auto* const second = static_cast<const Map*>(right);
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<Map*>(out)[i] = {first[i].factor * second[i].factor,
                                 second[i].factor * first[i].summand + second[i].summand};
  }
}

std::size_t rows_of(const DrawnCall& spec) { return 1 + spec.count % 61; }
std::size_t columns_of(const DrawnCall& spec) { return 1 + spec.lengths % 53; }
std::size_t permuted_of(const DrawnCall& spec) { return 1 + spec.count % 3001; }

/// Item number `item` of a permutation goes to this position: 7919 is a prime that divides no number of items.
std::size_t destination_of(const DrawnCall& spec, std::size_t item) {
  constexpr std::size_t kStep = 7919;
  return (item * kStep + spec.lengths % 1000) % permuted_of(spec);
}

}  // namespace

std::uint64_t mixed(std::uint64_t word) noexcept {
  word *= 0x9e3779b97f4a7c15ULL;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ word >> 27) * 0x94d049bb133111ebULL;
  return word ^ word >> 31;
}

torii_type random_type(std::mt19937_64& random, CallKind kind) {
  // Pairs have two operations only, so they come seldom where something is combined.
  const std::size_t count = std::size(kTypes) - (kind == CallKind::collective && random() % 4 != 0 ? 2 : 0);
  return kTypes[random() % count];
}

torii_op random_op(std::mt19937_64& random, torii_type type) {
  while (true) {
    const auto op = static_cast<torii_op>(random() % TORII_USER);
    // A product of complex numbers may have a zero of either sign.
    if (type == TORII_CF32 && op == TORII_PROD) continue;
    if (kernels::find(static_cast<Op>(op), static_cast<Type>(type), kernels::Isa::reference) != nullptr) return op;
  }
}

torii_user_function user_operation(bool commutes) noexcept { return commutes ? add_numbers : compose_maps; }

void fill_elements(const DrawnCall& spec, int rank, std::size_t first, std::size_t count, std::byte* out) {
  const std::size_t bytes = torii_type_bytes(spec.type);
  const std::vector<std::byte>& table = table_of(spec.type, spec.op == TORII_PROD);
  std::size_t at = (mixed(spec.seed + static_cast<std::uint64_t>(rank)) + first) % kPeriod;
  while (count != 0) {
    const std::size_t piece = std::min(count, kPeriod - at);
    std::memcpy(out, table.data() + at * bytes, piece * bytes);
    out += piece * bytes;
    count -= piece;
    at = 0;
  }
}

Items items_of(const DrawnCall& spec, Place place) {
  Items items;
  if (spec.kind == CallKind::transpose) {
    (void)torii_split(rows_of(spec), place.ranks, place.rank, &items.input_first, &items.input_count);
    (void)torii_split(columns_of(spec), place.ranks, place.rank, &items.result_first, &items.result_count);
    items.input_first *= columns_of(spec);
    items.input_count *= columns_of(spec);
    items.result_first *= rows_of(spec);
    items.result_count *= rows_of(spec);
  } else {
    (void)torii_split(permuted_of(spec), place.ranks, place.rank, &items.input_first, &items.input_count);
    items.result_first = items.input_first;
    items.result_count = items.input_count;
  }
  return items;
}

std::vector<std::byte> expected_items(const DrawnCall& spec, Place place) {
  const std::size_t bytes = torii_type_bytes(spec.type);
  const Items items = items_of(spec, place);
  std::vector<std::byte> result(items.result_count * bytes);
  const auto set = [&](std::size_t position, std::size_t item) {
    if (position < items.result_first || position >= items.result_first + items.result_count) return;
    fill_elements(spec, 0, item, 1, &result[(position - items.result_first) * bytes]);
  };
  if (spec.kind == CallKind::permute) {
    for (std::size_t item = 0; item < permuted_of(spec); ++item) set(destination_of(spec, item), item);
    return result;
  }
  const std::size_t rows = rows_of(spec);
  const std::size_t columns = columns_of(spec);
  for (std::size_t position = items.result_first; position < items.result_first + items.result_count; ++position) {
    set(position, position % rows * columns + position / rows);
  }
  return result;
}

torii_status redistribute(torii_team* team, const DrawnCall& spec, Place place, const void* input, void* result) {
  const std::size_t bytes = torii_type_bytes(spec.type);
  if (spec.kind == CallKind::transpose) {
    return torii_transpose(team, input, result, rows_of(spec), columns_of(spec), bytes);
  }
  const Items items = items_of(spec, place);
  std::vector<std::uint64_t> destinations;
  for (std::size_t item = 0; item < items.input_count; ++item) {
    destinations.push_back(destination_of(spec, items.input_first + item));
  }
  return torii_permute(team, input, items.input_count, destinations.data(), result, items.result_count, bytes);
}

}  // namespace torii::faults
