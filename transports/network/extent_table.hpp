// SPDX-License-Identifier: Apache-2.0
// The registered extents of a rank's arena as its peers know them: a table that they read from registered memory.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "runtime/fabric/extent.hpp"

namespace torii::transports {

/// Registered memory of a peer.
template <class Key>
struct RemoteExtent {
  Extent extent;
  std::uint64_t base = 0;  ///< makes an address of an offset in the arena when it is added
  Key key{};
};

/// A row is written before an offset that lies in it is told to any peer, and never changes. So whoever was told the
/// offset reads that row whole. Other rows may be read while they are written: `check` shows that. A key is whole
/// words.
template <class Key>
struct ExtentRow {
  static_assert(std::is_trivially_copyable_v<Key> && sizeof(Key) % sizeof(std::uint64_t) == 0);

  RemoteExtent<Key> extent;
  std::uint64_t check;

  static std::uint64_t check_of(const RemoteExtent<Key>& of) noexcept {
    std::uint64_t check = 0x746f7269695f6d72;  // a row of zeros is none
    for (const std::uint64_t word : std::bit_cast<std::array<std::uint64_t, sizeof(of) / sizeof(check)>>(of)) {
      check = std::rotl(check, 5) ^ word;
    }
    return check;
  }
};
template <class Key>
using ExtentTable = std::array<ExtentRow<Key>, kExtentsMost>;

template <class Key>
ExtentRow<Key> row_of(const RemoteExtent<Key>& of) noexcept {
  return {of, ExtentRow<Key>::check_of(of)};
}

/// The rows that are whole, up to the first that is not. The bytes come from the network, so any are handled.
template <class Key>
std::vector<RemoteExtent<Key>> extents_in(const ExtentTable<Key>& table) {
  std::vector<RemoteExtent<Key>> all;
  for (const ExtentRow<Key>& row : table) {
    if (row.check != ExtentRow<Key>::check_of(row.extent)) break;
    all.push_back(row.extent);
  }
  return all;
}

}  // namespace torii::transports
