// SPDX-License-Identifier: Apache-2.0
// What is done to elements before or after a sum: a multiplication by a factor, a division by the number of operands.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reduce_kernels/types.hpp"

namespace torii::kernels {

/// Why there are no averages of the type, as a sentence for the user; nullptr if there are.
const char* why_no_average(Type type) noexcept;

/// Why elements of the type cannot be multiplied, as a sentence for the user; nullptr if they can.
const char* why_no_factor(Type type) noexcept;

/// Writes `count` elements multiplied by the one at `factor` to `products`, which do not overlap: as Op::prod
/// multiplies (kernels.hpp), so every product is rounded to the type.
void multiply(Type type, const void* elements, const void* factor, void* products, size_t count) noexcept;

/// Sums in memory, of the type itself or, for small floats, as float.
struct Sums {
  const void* address = nullptr;
  bool are_wide = false;
};

/// Writes `count` sums divided by `operands` to `averages`, which may be the address of the sums if they are not wide.
/// - floats: the quotient is rounded once, to nearest even. Small floats are divided as float.
/// - complex: both parts are divided.
/// - integers: the quotient is truncated towards zero.
void divide(Type type, const Sums& sums, void* averages, size_t count, uint32_t operands) noexcept;

}  // namespace torii::kernels
