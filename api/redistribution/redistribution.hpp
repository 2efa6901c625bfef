// SPDX-License-Identifier: Apache-2.0
// Redistributes data over the ranks of a team: transposes and permutations, by alltoalls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "api/team/scratch.hpp"
#include "api/team/team.hpp"

namespace torii {

/// The purpose of a redistribution's memory, in messages.
inline constexpr const char* kScratchPurpose = "to redistribute data in";

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
