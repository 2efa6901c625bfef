// SPDX-License-Identifier: Apache-2.0
// How many phases of communication a redistribution of items takes at least: Floyd's potential, and how far news gets.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace torii {

/// Who may meet in one phase.
///   pairs   ranks meet two and two and exchange (the paper's model): with an odd number one rank is left alone
///   rounds  every rank sends to one rank and receives from one, mostly another (what floyd does)
enum class PhaseKind { pairs, rounds };

std::string_view name(PhaseKind kind) noexcept;

/// Items by (rank that has them, rank that they are for): holds[c * ranks + d].
using Holdings = std::vector<std::uint64_t>;

struct PhaseBound {
  double potential_before =
      0;                       ///< V(A): the sum over all piles of n log2 n, a pile being what one rank has for another
  double potential_after = 0;  ///< V(B)
  double gain_most = 0;        ///< of one phase
  int by_potential = 0;        ///< (V(B) - V(A)) / gain, rounded up
  int by_reach = 0;            ///< after k phases a rank has met at most 2^k ranks, itself among them
  int least = 0;               ///< the greater of the two; no schedule of phases is shorter
};

/// Throws Error{invalid_argument} for holdings that are not ranks * ranks.
PhaseBound phase_bound(std::span<const std::uint64_t> holdings, int ranks, PhaseKind kind);

/// What ranks hold for each other before the transpose of a matrix that is dealt by rows, balanced.
Holdings transpose_holdings(std::size_t rows, std::size_t columns, int ranks);

/// What ranks hold for each other before item i moves to position destinations[i]; both dealt by the balanced split.
/// Throws Error{invalid_argument} naming the first position that is out of range, or comes twice.
Holdings permutation_holdings(std::span<const std::uint64_t> destinations, int ranks);

}  // namespace torii
