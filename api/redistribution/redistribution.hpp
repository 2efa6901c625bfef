// SPDX-License-Identifier: Apache-2.0
// Redistributes data over the ranks of a team: transposes and permutations, by alltoalls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "api/team/team.hpp"

namespace torii {

/// A team's memory for packed and received data, kept from call to call; it never shrinks. It is in the arena, so peers
/// of the node store into it directly.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// At least `bytes` of uninitialised memory. If there is none, the team fails, because the other ranks wait for this
  /// one, and all report the same Error{no_resource}.
  std::byte* reserve(Team& team, std::size_t bytes);
  /// Call after a failed call: peers may still store into the memory, so it stays allocated until the context ends.
  void abandon() noexcept {
    address_ = nullptr;
    bytes_ = 0;
  }

 private:
  Context* context_ = nullptr;
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Reorders the dimensions of an array; see torii_transpose_array. Throws Error{invalid_argument}; returns the status
/// of the team's calls.
Status transpose(Team& team, Scratch& scratch, const std::byte* input, std::byte* result,
                 std::span<const std::size_t> extents, std::span<const int> axes, std::size_t element_bytes);

/// The items of this rank and their destinations.
struct Permutation {
  const std::byte* input = nullptr;
  std::size_t count = 0;
  const std::uint64_t* destinations = nullptr;  ///< positions in the result of all ranks, one rank after the other
  std::byte* result = nullptr;
  std::size_t result_count = 0;
  std::size_t item_bytes = 1;
};

/// Moves every item to its position; see torii_permute. Throws the same Error{invalid_argument} on all ranks.
Status permute(Team& team, Scratch& scratch, const Permutation& permutation);

}  // namespace torii
