// SPDX-License-Identifier: Apache-2.0
// Lower bounds on the number of communication phases of a redistribution: by Floyd's potential, and by reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace torii {

/// The communication that one phase allows.
///   pairs   ranks exchange in pairs (the paper's model); if their number is odd, one rank has no partner
///   rounds  every rank sends to one rank and receives from one rank, mostly a different one (like floyd)
enum class PhaseKind { pairs, rounds };

std::string_view name(PhaseKind kind) noexcept;

/// Items by (rank that has them, rank that they are for): holds[c * ranks + d].
using Holdings = std::vector<std::uint64_t>;

struct PhaseBound {
  double potential_before =
      0;  ///< V(A): the sum of n log2 n over all piles; a pile is the n items of a rank for another
  double potential_after = 0;  ///< V(B)
  double gain_most = 0;        ///< of one phase
  int by_potential = 0;        ///< (V(B) - V(A)) / gain_most, rounded up
  int by_reach = 0;            ///< after k phases a rank has data of at most 2^k ranks, itself included
  int least = 0;               ///< the greater of the two; no schedule of phases is shorter
};

/// Throws Error{invalid_argument} for holdings that are not ranks * ranks.
PhaseBound phase_bound(std::span<const std::uint64_t> holdings, int ranks, PhaseKind kind);

/// The holdings before the transpose of a matrix whose rows are distributed by the balanced split.
Holdings transpose_holdings(std::size_t rows, std::size_t columns, int ranks);

/// The holdings before item i moves to position destinations[i]; items and positions are distributed by the balanced
/// split. Throws Error{invalid_argument} naming the first position that is out of range or occurs twice.
Holdings permutation_holdings(std::span<const std::uint64_t> destinations, int ranks);

}  // namespace torii
