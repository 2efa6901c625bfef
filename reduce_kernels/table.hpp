// SPDX-License-Identifier: Apache-2.0
// The table that every implementation fills: one kernel per (operation, type). Private to reduce_kernels.
#pragma once

#include <array>

#include "reduce_kernels/kernels.hpp"

namespace torii::kernels {

/// A null entry means that the operation is not defined for the type.
class FoldTable {
 public:
  constexpr FoldFn get(Op op, Type type) const noexcept {
    return entries_[static_cast<size_t>(op)][static_cast<size_t>(type)];
  }
  constexpr void set(Op op, Type type, FoldFn fold) noexcept {
    entries_[static_cast<size_t>(op)][static_cast<size_t>(type)] = fold;
  }

 private:
  std::array<std::array<FoldFn, kTypeCount>, kOpCount> entries_{};
};

/// True when bit `index` of an operand mask is set; operands past the 32 bits of the mask never are.
inline bool has_bit(uint32_t mask, int index) noexcept { return index < 32 && ((mask >> index) & 1u) != 0; }

}  // namespace torii::kernels
