// SPDX-License-Identifier: Apache-2.0
// The memory of a team in a member's arena: control memory, staging, messages of sends and receives, standing rings.
#pragma once

#include <cstddef>

#include "api/context/context.hpp"

namespace torii {

/// The messages of sends and receives in a member's memory.
struct PairsPlace {
  std::size_t offset = 0;      ///< from the beginning of that memory
  std::size_t slot_bytes = 0;  ///< pair_slot_bytes() of the ranks for which the memory was taken, maybe more than there
                               ///< are: then the messages of all members fit
};

/// Bytes of a member's control memory and of its staging, for teams of up to `ranks` ranks of that context.
std::size_t team_control_bytes(int ranks, const Context& context) noexcept;
std::size_t team_staging_bytes(int ranks, Context& context) noexcept;
/// For a context whose memory is not pinned.
std::size_t team_staging_bytes(int ranks) noexcept;
/// Bytes of its messages of sends and receives. Taken when something is sent.
std::size_t team_pairs_bytes(int ranks, bool several_nodes);
PairsPlace pairs_place(int ranks, Context& context) noexcept;
/// Bytes of its standing rings, which are behind all the rest; 0 where the setting STANDING_RINGS is 0, or a fabric
/// pins the memory. A larger team than has rings keeps room for those of its parts.
std::size_t team_rings_bytes(int ranks, Context& context);
/// All of it.
std::size_t team_memory_bytes(int ranks, Context& context);

}  // namespace torii
