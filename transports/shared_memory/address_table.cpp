// SPDX-License-Identifier: Apache-2.0
// Reads entries between two equal looks at a version; the board of a team uses the same pattern.
#include "transports/shared_memory/address_table.hpp"

#include <algorithm>

#include "runtime/base/platform.hpp"

namespace torii::shared_memory {
namespace {

/// A reader of a higher real-time priority keeps the CPU from the changing thread even if it yields, so it sleeps after
/// that many looks. They are no longer counted then: tests/exploration knows by that that the reader only waits.
constexpr int kLooks = 10;
constexpr std::int64_t kSleepNs = 50'000;

}  // namespace

void AddressTable::reserve(std::size_t entries) {
  const std::size_t before = blocks_.empty() ? 0 : blocks_.front().cells.size();
  constexpr std::size_t kFirst = 16;
  if (before < std::max<std::size_t>(entries, 1)) blocks_.emplace_front(std::max({entries, 2 * before, kFirst}));
}

void AddressTable::set(std::span<const Entry> entries) noexcept {
  if (blocks_.empty()) return;
  Block& block = blocks_.front();
  const std::uint64_t version = version_.load(std::memory_order_relaxed);
  // Release stores keep this order: a reader that sees a new value also sees the odd version, or a later one.
  version_.store(version + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    block.cells[i].first.store(entries[i].range.first, std::memory_order_release);
    block.cells[i].end.store(entries[i].range.end, std::memory_order_release);
    block.cells[i].offset.store(entries[i].offset, std::memory_order_release);
  }
  block.count.store(entries.size(), std::memory_order_release);
  current_.store(&block, std::memory_order_release);
  any_.store(!entries.empty(), std::memory_order_relaxed);  // it publishes nothing
  version_.store(version + 2, std::memory_order_release);
}

std::optional<std::int64_t> AddressTable::search(std::uintptr_t address, std::size_t bytes) const noexcept {
  for (int looks = 0;;) {
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    const Block* const block = current_.load(std::memory_order_acquire);
    if (block == nullptr) return std::nullopt;
    const auto found = search(*block, address, bytes);
    if (version % 2 == 0 && version_.load(std::memory_order_relaxed) == version) return found;
    if (looks == kLooks) {
      platform().sleep(kSleepNs);
    } else {
      ++looks;
    }
    platform().yield();
  }
}

std::optional<std::int64_t> AddressTable::search(const Block& block, std::uintptr_t address,
                                                 std::size_t bytes) noexcept {
  // The last entry that does not begin after the address.
  std::size_t low = 0;
  std::size_t high = block.count.load(std::memory_order_acquire);
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (block.cells[middle].first.load(std::memory_order_acquire) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return std::nullopt;
  const Cell& cell = block.cells[low - 1];
  const std::uintptr_t first = cell.first.load(std::memory_order_acquire);
  const std::uintptr_t end = cell.end.load(std::memory_order_acquire);
  const std::int64_t offset = cell.offset.load(std::memory_order_acquire);
  if (address < first || address > end || bytes > end - address) return std::nullopt;
  return offset + static_cast<std::int64_t>(address - first);
}

}  // namespace torii::shared_memory
