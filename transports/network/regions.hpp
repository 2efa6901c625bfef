// SPDX-License-Identifier: Apache-2.0
// The extents of the arena that a device has registered.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "runtime/fabric/extent.hpp"

namespace torii::transports {

/// Readers need no lock: release of the count shows them regions that do not change any more. One thread at a time
/// adds. `Memory` owns a registration.
template <class Memory>
class Regions {
 public:
  struct Region {
    Extent extent;
    Memory memory;
  };

  std::span<const Region> all() const noexcept { return {regions_.data(), count_.load(std::memory_order_acquire)}; }
  /// The region that holds [offset, offset + bytes) of the arena; nullptr if none does.
  const Region* find(std::uint64_t offset, std::size_t bytes) const noexcept {
    for (const Region& one : all()) {
      if (one.extent.holds(offset, bytes)) return &one;
    }
    return nullptr;
  }
  bool are_full() const noexcept { return all().size() == kExtentsMost; }
  /// Unless they are full.
  void add(const Extent& extent, Memory memory) noexcept {
    const std::size_t count = all().size();
    regions_[count].memory = std::move(memory);
    regions_[count].extent = extent;
    count_.store(count + 1, std::memory_order_release);
  }
  /// Nobody reads them any more.
  void clear() noexcept {
    const std::size_t count = count_.exchange(0, std::memory_order_acq_rel);
    for (std::size_t i = 0; i < count; ++i) regions_[i].memory = Memory();
  }

 private:
  std::array<Region, kExtentsMost> regions_;
  std::atomic<std::size_t> count_ = 0;
};

}  // namespace torii::transports
