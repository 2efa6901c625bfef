// SPDX-License-Identifier: Apache-2.0
// Products of lengths. Included by torii.hpp.
#pragma once

#include <cstddef>
#include <limits>

namespace torii {
inline namespace cpp {

/// left * right, or the largest number if that is larger than any: no memory is so long, so it fits none.
constexpr std::size_t size_product(std::size_t left, std::size_t right) noexcept {
  std::size_t result = 0;
  return __builtin_mul_overflow(left, right, &result) ? std::numeric_limits<std::size_t>::max() : result;
}
/// How a message begins a number that size_product() gave.
constexpr const char* at_least(std::size_t number) noexcept {
  return number == std::numeric_limits<std::size_t>::max() ? "at least " : "";
}

}  // namespace cpp
}  // namespace torii
