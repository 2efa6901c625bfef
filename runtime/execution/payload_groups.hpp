// SPDX-License-Identifier: Apache-2.0
// Streams that carry the same payloads, and payloads that are so short that they have entries of a kind of their own.
#pragma once

#include <vector>

#include "reduce_kernels/types.hpp"
#include "runtime/plan/layout.hpp"
#include "runtime/plan/plan.hpp"
#include "runtime/rings/ring_area.hpp"

namespace torii {

/// The node of each rank of a team, by team rank.
using Nodes = std::vector<int>;

/// Streams that always carry the same payload: it is stored once, for the first of them, and read there by all
/// receivers. Returns for each out-stream of the plan the first stream of its group, or -1 when it is alone. Signals
/// and counts stay each stream's own, so nothing else changes: a place is filled anew when all its readers have taken
/// its last message. Streams to other nodes form groups of their own: each receiver gets a copy.
std::vector<int> group_leaders(const Plan& plan, const Nodes& nodes);

/// Whether messages of the plan may be in cells.
bool has_cells(const Plan& plan, Widening widening) noexcept;

/// The entries of a call on streams between ranks of one node. Equal on all ranks.
inline EntryKind entry_kind_of(bool has_cells, const Layout& layout) noexcept {
  if (!has_cells) return EntryKind::line;
  if (layout.longest_bytes() <= cell_payload_bytes(kCellBytes)) return EntryKind::cell;
  return layout.longest_bytes() <= cell_payload_bytes(kWideCellBytes) ? EntryKind::wide_cell : EntryKind::line;
}

}  // namespace torii
