// SPDX-License-Identifier: Apache-2.0
// The lengths that models of time see: few, so that calls of many lengths share a choice and a plan.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "collectives/building/algorithm.hpp"

namespace torii {

/// Each doubling has so many lengths.
inline constexpr std::size_t kModelledSteps = 4;
inline constexpr std::size_t kModelledBytesLeast = 64;

/// The distance between modelled lengths from that of `bytes` on.
inline constexpr std::size_t modelled_step(std::size_t bytes) noexcept {
  return std::bit_floor(bytes) / kModelledSteps;
}

/// The longest modelled length of at most `bytes`, which is at least kModelledBytesLeast.
inline constexpr std::size_t modelled_below(std::size_t bytes) noexcept { return bytes - bytes % modelled_step(bytes); }

/// Rounds a length up to the next one that models see: a message that holds this one also holds `bytes`. SIZE_MAX,
/// which stands for blocks of unequal lengths, stays, as do lengths too long to be rounded up.
inline constexpr std::size_t modelled_bytes(std::size_t bytes) noexcept {
  if (bytes <= kModelledBytesLeast) return kModelledBytesLeast;
  const std::size_t below = modelled_below(bytes);
  if (below == bytes) return bytes;
  return below > SIZE_MAX - modelled_step(bytes) ? bytes : below + modelled_step(bytes);
}

/// All lengths that a model sees as one of `modelled`, which holds a modelled length.
inline constexpr ByteInterval lengths_seen_in(const ByteInterval& modelled) noexcept {
  const std::size_t least = modelled.least <= kModelledBytesLeast ? 0 : modelled_below(modelled.least - 1) + 1;
  const std::size_t most = modelled.most == SIZE_MAX ? SIZE_MAX : modelled_below(modelled.most);
  return {least, most};
}

}  // namespace torii
