// SPDX-License-Identifier: Apache-2.0
// The registered extents of a rank's arena as its peers know them: a table that they read from the engine's own memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/fabric/extent.hpp"

namespace torii::libfabric {

/// Registered memory of a peer.
struct RemoteExtent {
  Extent extent;
  std::uint64_t base = 0;  ///< makes an address of an offset in the arena when it is added
  std::uint64_t key = 0;
};

/// A row is written before an offset that lies in it is told to any peer, and never changes. So whoever was told the
/// offset reads that row whole. Other rows may be read while they are written: `check` shows that.
struct ExtentRow {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t base;
  std::uint64_t key;
  std::uint64_t check;

  static std::uint64_t check_of(const RemoteExtent& of) noexcept {
    constexpr std::uint64_t kIsThere = 0x746f7269695f6d72;  // a row of zeros is none
    return of.extent.offset ^ of.extent.bytes ^ of.base ^ of.key ^ kIsThere;
  }
};
using ExtentTable = std::array<ExtentRow, kExtentsMost>;

inline ExtentRow row_of(const RemoteExtent& of) noexcept {
  return {of.extent.offset, of.extent.bytes, of.base, of.key, ExtentRow::check_of(of)};
}

/// The rows that are whole, up to the first that is not. The bytes come from the network, so any are handled.
inline std::vector<RemoteExtent> extents_in(const ExtentTable& table) {
  std::vector<RemoteExtent> all;
  for (const ExtentRow& row : table) {
    const RemoteExtent extent = {{row.offset, row.bytes}, row.base, row.key};
    if (row.check != ExtentRow::check_of(extent)) break;
    all.push_back(extent);
  }
  return all;
}

}  // namespace torii::libfabric
