// SPDX-License-Identifier: Apache-2.0
// The memory of a team in a member's arena: control memory, messages of sends and receives, standing rings.
#pragma once

#include <cstddef>

#include "api/context/context.hpp"
#include "runtime/point_to_point/pair_area.hpp"

namespace torii {

/// The messages of sends and receives in a member's memory.
struct PairsPlace {
  std::size_t offset = 0;  ///< from the beginning of that memory
  std::size_t bytes = 0;
  /// They fit the ranks for which the memory was taken, which may be more than there are.
  PairSizes sizes;
};

/// Bytes of a member's control memory, for teams of up to `ranks` ranks of that context.
std::size_t team_control_bytes(int ranks, const Context& context) noexcept;
/// Its messages of sends and receives. Pages are taken when something is sent.
PairsPlace pairs_place(int ranks, const Context& context) noexcept;
/// Whether messages to other nodes are dealt to engines by their credits. Equal on all ranks.
bool balances_engines(const Context& context) noexcept;
/// Bytes of its standing rings on so many channels, which are behind all the rest.
std::size_t team_rings_bytes(int ranks, int channels, Context& context);
/// All of it.
std::size_t team_memory_bytes(int ranks, int channels, Context& context);

}  // namespace torii
