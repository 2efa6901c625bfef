// SPDX-License-Identifier: Apache-2.0
// An engine's own memory, outside the arena: the words that peers greet with, and what payloads are copied to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "runtime/fabric/words.hpp"
#include "transports/libfabric/api.hpp"
#include "transports/libfabric/device.hpp"
#include "transports/network/extent_table.hpp"

namespace torii::libfabric {

using RemoteExtent = transports::RemoteExtent<std::uint64_t>;
using ExtentTable = transports::ExtentTable<std::uint64_t>;

/// In this order: the bell, which is a line that anybody may write into; a word for each rank; a line of zeros for
/// confirmed writes; the table of extents, which peers read; bounce memory.
class OwnMemory {
 public:
  /// Maps it; pages are taken on first touch, or when a provider pins them. Throws Error{no_resource}.
  OwnMemory(int ranks, std::size_t bounce_bytes);
  ~OwnMemory();
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  /// Throws Error{no_resource}.
  void register_with(Device& device, fid_ep& endpoint);
  void deregister() noexcept { region_.reset(); }

  std::byte* bell() const noexcept { return base_; }
  const std::byte* zeros() const noexcept { return base_ + zeros_offset(); }
  /// Equal on all ranks of a job.
  std::size_t table_offset() const noexcept { return zeros_offset() + kLineBytes; }
  /// Adds a row behind the others; no more than the rows of a device, so there is room.
  void add_extent(const RemoteExtent& extent) noexcept {
    const auto row = transports::row_of(extent);
    std::memcpy(base_ + table_offset() + extents_++ * sizeof(row), &row, sizeof(row));
  }
  std::size_t extents() const noexcept { return extents_; }
  RemoteExtent first_extent() const noexcept {
    transports::ExtentRow<std::uint64_t> row;
    std::memcpy(&row, base_ + table_offset(), sizeof(row));
    return row.extent;
  }
  std::span<std::byte> bounce() const noexcept { return {base_ + front_bytes(), bytes_ - front_bytes()}; }
  /// The last word of a rank; 0: none.
  std::uint64_t greeting(int rank) const noexcept { return load_word(base_ + greeting_offset(rank)); }
  /// Where a rank writes its word: equal on all ranks.
  static std::size_t greeting_offset(int rank) noexcept {
    return kLineBytes + static_cast<std::size_t>(rank) * sizeof(std::uint64_t);
  }
  void* descriptor() const noexcept { return fi_mr_desc(region_.get()); }
  std::uint64_t key() const noexcept { return fi_mr_key(region_.get()); }

 private:
  std::size_t zeros_offset() const noexcept { return round_up(greeting_offset(ranks_), kLineBytes); }
  std::size_t front_bytes() const noexcept { return round_up(table_offset() + sizeof(ExtentTable), kLineBytes); }

  int ranks_;
  std::size_t extents_ = 0;  ///< in the table
  std::size_t bytes_;
  std::byte* base_;
  Fid<fid_mr> region_;
};

}  // namespace torii::libfabric
