// SPDX-License-Identifier: Apache-2.0
// What the kernel says about this process's mappings, and whether their pages may be exchanged for pages of an arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace torii::shared_memory {

/// Addresses [first, end).
struct AddressRange {
  std::uintptr_t first = 0;
  std::uintptr_t end = 0;
  std::size_t bytes() const noexcept { return end - first; }
  bool contains(AddressRange other) const noexcept { return first <= other.first && other.end <= end; }
  /// The common part; first >= end if there is none.
  AddressRange common(AddressRange other) const noexcept {
    return {first > other.first ? first : other.first, end < other.end ? end : other.end};
  }
};

/// One line of /proc/self/maps.
struct MappedRange {
  AddressRange range;
  bool readable = false, writable = false, executable = false, is_shared = false;
  bool locked = false;  ///< only /proc/self/smaps tells
  std::uint64_t offset = 0, device_major = 0, device_minor = 0;
  std::uint64_t inode = 0;  ///< 0: no file behind it
  std::string name;
};

/// Reads text in the form of /proc/self/maps or /proc/self/smaps; skips other lines.
std::vector<MappedRange> parse_mappings(std::string_view text);

/// This process's mappings, in the order of their addresses. Throws Error{unsupported} if /proc is missing.
std::vector<MappedRange> read_mappings();

/// Why the pages of `range` cannot be adopted: the first place that is not private, anonymous, readable and writable
/// memory that may move. Empty if they can.
std::string why_not_adoptable(const std::vector<MappedRange>& mappings, AddressRange range);

/// An address as the kernel writes it, with 0x in front.
std::string hex(std::uintptr_t address);

}  // namespace torii::shared_memory
