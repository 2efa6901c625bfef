// SPDX-License-Identifier: Apache-2.0
// A part of an arena that is registered with devices as a whole.
#pragma once

#include <cstddef>
#include <cstdint>

namespace torii {

struct Extent {
  std::uint64_t offset = 0;  ///< from the arena's beginning
  std::size_t bytes = 0;

  std::uint64_t end() const noexcept { return offset + bytes; }
  bool holds(std::uint64_t from, std::size_t count) const noexcept {
    return from >= offset && count <= bytes && from - offset <= bytes - count;
  }
};

/// The most extents of an arena. Each is at least as large as all before it unless memory is short.
inline constexpr std::size_t kExtentsMost = 32;

}  // namespace torii
