// SPDX-License-Identifier: Apache-2.0
// Collectives as movements of data: the bytes of each input that each rank must read, whatever the way.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <optional>

namespace torii::perf {

/// A source's input is `lanes` blocks of `lane_bytes`. A reader takes one block of every source: its own where there
/// are as many blocks as ranks. It folds them into one block, or lays them side by side in the order of ranks.
struct Movement {
  int ranks = 1;
  int lanes = 1;
  size_t lane_bytes = 0;
  bool folds = false;
  std::optional<int> only_source = std::nullopt;  ///< else all ranks give
  std::optional<int> only_reader = std::nullopt;  ///< else all ranks take

  bool is_source(int rank) const { return !only_source || *only_source == rank; }
  bool is_reader(int rank) const { return !only_reader || *only_reader == rank; }
  /// All give and all take, so that who has read has been read.
  bool is_symmetric() const { return !only_source && !only_reader; }
  size_t lane_of(int reader) const { return lanes == 1 ? 0 : static_cast<size_t>(reader); }
  /// The place of a source's block in the reader's result, in bytes.
  size_t place_of(int source) const { return folds || only_source ? 0 : static_cast<size_t>(source) * lane_bytes; }
};

/// nullopt for what has no limit here: scan and exscan, whose ranks take unequal parts.
std::optional<Movement> movement_of(const torii_call& call, int ranks, size_t element_bytes);

}  // namespace torii::perf
