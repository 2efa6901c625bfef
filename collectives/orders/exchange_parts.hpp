// SPDX-License-Identifier: Apache-2.0
// The constructions of exchange lists, each for shapes in a normal form. Used inside this folder only.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "collectives/orders/exchange_lists.hpp"

namespace torii {

/// A torus or mesh of one rank per node whose extents do not increase; dimensions of extent 1 come last.
struct ExchangeShape {
  Coordinates extents = {1, 1, 1};
  std::array<bool, 3> wraps = {false, false, false};
  int dimensions = 0;  ///< the number of dimensions with an extent above 1

  int nodes() const { return extents[0] * extents[1] * extents[2]; }
  bool is_cube() const { return extents[0] == extents[2]; }
  bool wraps_everywhere() const;
  bool wraps_nowhere() const;
};

using ExchangeOffsets = std::vector<ExchangeOffset>;

constexpr Coordinates negative(const Coordinates& v) { return {-v[0], -v[1], -v[2]}; }

/// All offsets except 0, the last dimension innermost, each in the shorter direction and ties along +.
ExchangeOffsets counted_offsets(const Coordinates& extents, const std::array<bool, 3>& wraps);

/// For up to two dimensions, none of which wraps: the paper's order for meshes.
ExchangeOffsets mesh_offsets(int x, int y);
/// For up to two dimensions that wrap: the paper's order for tori if x = y is even, otherwise its order for meshes.
ExchangeOffsets printed_torus_offsets(int x, int y);
/// For up to two dimensions that wrap: pairs (i,j) with (j,i), and ends with offsets that depend on the parities.
ExchangeOffsets torus_offsets(int x, int y);
/// For three dimensions, or two of which one wraps. `seed` 0 pairs v with half the extents - v, which needs even
/// extents that all wrap; another seed searches for a pairing. Made for four messages in flight, or two if nothing
/// wraps.
ExchangeOffsets paired_offsets(const ExchangeShape& shape, std::uint64_t seed);
/// The best of several orders for this number of transfers in flight, according to the network model.
ExchangeOffsets box_offsets(const ExchangeShape& shape, int controllers);

}  // namespace torii
