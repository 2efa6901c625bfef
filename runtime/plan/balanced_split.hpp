// SPDX-License-Identifier: Apache-2.0
// How items are dealt over ranks in one piece each, as evenly as can be.
#pragma once

#include <cstddef>

namespace torii {

/// Some of many items in a row.
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
