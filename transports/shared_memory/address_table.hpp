// SPDX-License-Identifier: Apache-2.0
// From addresses to offsets in an arena: any thread reads without a lock while another one changes the table.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "transports/shared_memory/mappings.hpp"

namespace torii::shared_memory {

class AddressTable {
 public:
  struct Entry {
    AddressRange range;
    std::int64_t offset = 0;  ///< of range.first
  };

  /// The offset of `address` if one entry contains all of [address, address + bytes).
  std::optional<std::int64_t> find(const void* address, std::size_t bytes) const noexcept {
    if (!any_.load(std::memory_order_relaxed)) return std::nullopt;
    return search(reinterpret_cast<std::uintptr_t>(address), bytes);
  }

  /// Makes room, so that set() of that many entries cannot fail.
  void reserve(std::size_t entries);
  /// Replaces all entries; the new ones are in ascending order and do not overlap. One caller at a time.
  void set(std::span<const Entry> entries) noexcept;

 private:
  struct Cell {
    std::atomic<std::uintptr_t> first, end;
    std::atomic<std::int64_t> offset;
  };
  struct Block {
    using allocator_type = std::pmr::polymorphic_allocator<>;
    Block(std::size_t capacity, allocator_type memory) : cells(capacity, memory) {}
    std::atomic<std::size_t> count = 0;  ///< beside the cells, so that no reader passes their end
    std::pmr::vector<Cell> cells;
  };
  std::optional<std::int64_t> search(std::uintptr_t address, std::size_t bytes) const noexcept;
  static std::optional<std::int64_t> search(const Block& block, std::uintptr_t address, std::size_t bytes) noexcept;

  std::atomic<bool> any_ = false;
  std::atomic<std::uint64_t> version_ = 0;  ///< odd while the entries change
  std::atomic<Block*> current_ = nullptr;
  /// The newest first. Outgrown blocks stay: a reader may still use one. Each has twice the room of the one before.
  /// Tests put them where they see each access.
  std::pmr::forward_list<Block> blocks_;
};

}  // namespace torii::shared_memory
