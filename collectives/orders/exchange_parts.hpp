// SPDX-License-Identifier: Apache-2.0
// The constructions of exchange lists, each for shapes in a normal form: inside collectives only.
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
  int dimensions = 0;  ///< those of extent above 1

  int nodes() const { return extents[0] * extents[1] * extents[2]; }
  bool is_cube() const { return extents[0] == extents[2]; }
  bool wraps_everywhere() const;
  bool wraps_nowhere() const;
};

using ExchangeOffsets = std::vector<ExchangeOffset>;

/// All offsets but 0, the last dimension innermost, each the shorter way round and ties along +.
ExchangeOffsets counted_offsets(const Coordinates& extents, const std::array<bool, 3>& wraps);

/// Up to two dimensions, none of which wraps: the paper's order for meshes.
ExchangeOffsets mesh_offsets(int x, int y);
/// Up to two dimensions that wrap: the paper's order for tori; x odd and y odd, or x = y, else the order for meshes.
ExchangeOffsets printed_torus_offsets(int x, int y);
/// Up to two dimensions that wrap: (i,j) beside (j,i), and a tail for every parity.
ExchangeOffsets torus_offsets(int x, int y);
/// Three dimensions, or two of which one wraps: by halves (`seed` 0; all extents even, all wrap) or by a search from
/// `seed`, four messages in flight (two where nothing wraps).
ExchangeOffsets paired_offsets(const ExchangeShape& shape, std::uint64_t seed);
/// The best of several orders for so many transfers in flight, as the network model simulates them.
ExchangeOffsets box_offsets(const ExchangeShape& shape, int controllers);

}  // namespace torii
