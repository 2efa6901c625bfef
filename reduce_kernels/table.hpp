// SPDX-License-Identifier: Apache-2.0
// The table that every implementation fills: one kernel per (operation, type). Private to reduce_kernels.
#pragma once

#include <array>

#include "reduce_kernels/kernels.hpp"

namespace torii::kernels {

/// A null entry: the operation is not defined for the type.
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

/// True if bit `index` of a mask of targets is set.
inline bool has_bit(uint32_t mask, int index) noexcept { return ((mask >> index) & 1u) != 0; }

inline bool is_wide(const uint8_t* wide_sources, int index) noexcept {
  return wide_sources != nullptr && wide_sources[index] != 0;
}

/// Whether operands have to be checked one by one; false if all are of the type itself.
inline bool has_wide(const Operands& operands) noexcept {
  return operands.wide_sources != nullptr || operands.wide_targets != 0;
}

}  // namespace torii::kernels
