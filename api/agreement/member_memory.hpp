// SPDX-License-Identifier: Apache-2.0
// The memory of a team in a member's arena: control memory, messages of sends and receives, standing rings.
#pragma once

#include <cstddef>
#include <optional>

#include "api/context/context.hpp"
#include "runtime/point_to_point/pair_rings.hpp"

namespace torii {

/// The messages of sends and receives in a member's memory.
struct PairsPlace {
  std::size_t offset = 0;  ///< from the beginning of that memory
  std::size_t bytes = 0;   ///< team_pairs_bytes()
  // As of the ranks for which the memory was taken, maybe more than there are: then the messages of all members fit.
  std::size_t slot_bytes = 0;      ///< pair_slot_bytes()
  std::optional<PairSizes> rings;  ///< pair_sizes(), for that many ranks; nothing: messages use slots
};

/// Bytes of a member's control memory, for teams of up to `ranks` ranks of that context.
std::size_t team_control_bytes(int ranks, const Context& context) noexcept;
/// Bytes of its messages of sends and receives. Taken when something is sent.
std::size_t team_pairs_bytes(int ranks, bool several_nodes);
PairsPlace pairs_place(int ranks, const Context& context, bool has_rings) noexcept;
/// Whether messages to other nodes are dealt to engines by their credits. Equal on all ranks.
bool balances_engines(const Context& context) noexcept;
/// Bytes of its standing rings on so many channels, which are behind all the rest.
std::size_t team_rings_bytes(int ranks, int channels, Context& context);
/// All of it.
std::size_t team_memory_bytes(int ranks, int channels, Context& context);

}  // namespace torii
