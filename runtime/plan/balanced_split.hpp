// SPDX-License-Identifier: Apache-2.0
// Divides items over ranks: one contiguous range for each rank, as equal as possible.
#pragma once

#include <cstddef>

namespace torii {

/// A contiguous range of items.
struct ItemRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// The balanced split: the first `items` mod `ranks` ranks have one item more than the others.
constexpr ItemRange balanced_split(std::size_t items, int ranks, int rank) {
  const auto all = static_cast<std::size_t>(ranks);
  const auto at = static_cast<std::size_t>(rank);
  const std::size_t each = items / all;
  const std::size_t more = items % all;
  return {at * each + (at < more ? at : more), each + (at < more ? 1 : 0)};
}

}  // namespace torii
