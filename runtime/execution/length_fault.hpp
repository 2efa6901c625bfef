// SPDX-License-Identifier: Apache-2.0
// Two ranks that give unequal lengths for a block between them, and what such a fault is found by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace torii {

struct LengthFault {
  int peer = -1;            ///< rank in the context; -1: there is none
  bool comes_in = false;    ///< the block is for this rank, not for the peer
  bool is_earlier = false;  ///< it belongs to an earlier call; its lengths may not be known any more, and are then 0
  std::size_t peer_bytes = 0;
  std::size_t own_bytes = 0;
  /// Not a block, but a message of any call: those of the two ranks before this one differ.
  bool is_message = false;
};

/// A rank's knowledge of its earlier calls and of its peers when it looks for such a block.
struct LengthEvidence {
  std::span<const std::uint32_t> earlier;     ///< salted signatures of this rank's earlier calls with unequal blocks
  const std::function<bool(int)>& has_ended;  ///< whether that rank of the plan has ended this call
  bool is_late = true;  ///< other ranks have had time to name the cause better than by a message that does not fit
};

}  // namespace torii
