// SPDX-License-Identifier: Apache-2.0
// Redistributes data over the ranks of a team: transposes and permutations, made of alltoalls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "api/team/team.hpp"

namespace torii {

/// Memory of a team for what is packed and what comes in, kept from call to call and never made smaller. It lies in the
/// arena, where peers of the node store into it.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// At least `bytes`, with anything in it. Throws Error{no_resource} where there is no memory, after aborting the
  /// team: the other ranks are about to wait for this one.
  std::byte* reserve(Team& team, std::size_t bytes);
  /// After a call that failed: peers may still store into what there is, so it is left as it is until the context ends.
  void abandon() noexcept {
    address_ = nullptr;
    bytes_ = 0;
  }

 private:
  Context* context_ = nullptr;
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The dimensions of an array in another order; see torii_transpose_array. Throws Error{invalid_argument}; other ends
/// of the team's calls are returned.
Status transpose(Team& team, Scratch& scratch, const std::byte* input, std::byte* result,
                 std::span<const std::size_t> extents, std::span<const int> axes, std::size_t element_bytes);

/// Items of this rank, and where they go.
struct Permutation {
  const std::byte* input = nullptr;
  std::size_t count = 0;
  const std::uint64_t* destinations = nullptr;  ///< positions in the result of all ranks, one rank after the other
  std::byte* result = nullptr;
  std::size_t result_count = 0;
  std::size_t item_bytes = 1;
};

/// Moves every item to its position; see torii_permute. Throws Error{invalid_argument} on all ranks alike.
Status permute(Team& team, Scratch& scratch, const Permutation& permutation);

}  // namespace torii
