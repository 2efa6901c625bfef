// SPDX-License-Identifier: Apache-2.0
// Three ranks of one node with real arenas and the real transport in shared memory, made once; explorations use them
// one after the other.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "tests/exploration/explorer.hpp"
#include "transports/shared_memory/shared_memory.hpp"

namespace torii::exploration {

inline constexpr std::size_t kGroundBytes = std::size_t{256} << 10;

class Station {
 public:
  static Station& instance();
  /// Whether the platform has fences for all ranks (Platform::fence_all()); at first it has none.
  static void let_sleepers_fence(bool let) noexcept;
  /// The part of a rank's arena that a world uses: all zero when the world is set up.
  std::byte* ground(int rank) const;
  std::uint64_t ground_offset() const noexcept { return offset_; }
  shared_memory::SharedMemory& transport(int rank);
  /// Clears the ground and tells the explorer of the arenas.
  void set_up(Explorer& explorer, int ranks);

 private:
  struct Rank;
  Station();
  ~Station();
  std::array<std::unique_ptr<Rank>, kRanksMax> ranks_;
  std::uint64_t offset_ = 0;
};

}  // namespace torii::exploration
