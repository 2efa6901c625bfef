// SPDX-License-Identifier: Apache-2.0
// How the staging memory of a plan is divided, and which streams share slots or credits. Both are equal on all ranks,
// so no rank has to ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reduce_kernels/types.hpp"
#include "runtime/execution/rings.hpp"
#include "runtime/plan/layout.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// The same on all ranks. Staging contains, in this order, the slots and cells of in-streams, the lines of buffer
/// offers, and the credit lines of out-streams. If the ranks are on several nodes, a send slot for every slot of the
/// out-streams follows. A pairwise exchange has two lines of buffer offers for each rank of the team.
struct StagingShape {
  std::size_t slot_bytes = 0;         ///< header line and payload
  bool has_cells = false;             ///< short messages are in cells
  std::size_t cells_offset = 0;       ///< of a stream's cells, one for each slot, from its first slot
  std::size_t wide_cells_offset = 0;  ///< likewise
  std::size_t stream_bytes = 0;       ///< all slots and cells of one stream
  std::size_t offers_offset = 0;      ///< the lines of buffer offers
  std::size_t credits_offset = 0;
  std::size_t credit_bytes = 0;  ///< credit words of one stream, whole lines
  std::size_t send_offset = 0;
  std::size_t total_bytes = 0;
};
StagingShape staging_shape(const Plan& plan, std::size_t segment_bytes, Widening widening, bool several_nodes);
/// For a simulation without data, in which all peers are on other nodes. Slots are words, and there is room for nothing
/// but signals and credits. Payloads have addresses, but nobody may access them.
StagingShape signals_shape(const Plan& plan) noexcept;

/// Whether messages of the plan may be in cells.
bool has_cells(const Plan& plan, Widening widening) noexcept;

/// The node of each rank of a team, by team rank.
using Nodes = std::vector<int>;

/// Streams that always carry the same payload: it is stored once, in the slots of the first of them, and read there by
/// all receivers. Returns for each out-stream of the plan the first stream of its group, or -1 when it is alone.
/// Signals and credits stay each stream's own, so nothing else changes: a slot is filled anew when the step has all
/// their credits. Streams to other nodes form groups of their own: those share the send slot, and each receiver gets a
/// copy.
std::vector<int> group_leaders(const Plan& plan, const Nodes& nodes);

/// The cells of a call on streams between ranks of one node. Equal on all ranks.
inline Cells cells_of(const StagingShape& shape, const Layout& layout) noexcept {
  if (!shape.has_cells) return {};
  if (layout.longest_bytes() <= cell_payload_bytes(kCellBytes)) return {kCellBytes, shape.cells_offset};
  if (layout.longest_bytes() <= cell_payload_bytes(kWideCellBytes)) return {kWideCellBytes, shape.wide_cells_offset};
  return {};
}

}  // namespace torii
