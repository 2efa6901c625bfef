// SPDX-License-Identifier: Apache-2.0
// The elements of calls: of every type, and combined exactly in any order; and the items of redistributions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "tools/torii-sim/faults/calls.hpp"

namespace torii::faults {

std::uint64_t mixed(std::uint64_t word) noexcept;

/// A type; for a collective that combines one whose operations are exact.
torii_type random_type(std::mt19937_64& random, CallKind kind);
/// An operation that is defined for the type and gives the same bits in any order.
torii_op random_op(std::mt19937_64& random, torii_type type);

/// The type of the elements of a user's operation, for results and data: either a number, or a map from x to a x + b,
/// of which a has the lower half. All is modulo a power of two.
inline constexpr torii_type kUserType = TORII_U64;
/// Sums of numbers, which commute, or compositions of maps, which do not.
torii_user_function user_operation(bool commutes) noexcept;

/// Writes elements [first, first + count) of the rank's data.
void fill_elements(const DrawnCall& spec, int rank, std::size_t first, std::size_t count, std::byte* out);

/// How many items a rank of a transpose or permute has, and gets, and the number of its first one.
struct Items {
  std::size_t input_first = 0;
  std::size_t input_count = 0;
  std::size_t result_first = 0;
  std::size_t result_count = 0;
};
Items items_of(const DrawnCall& spec, Place place);
std::vector<std::byte> expected_items(const DrawnCall& spec, Place place);

}  // namespace torii::faults
