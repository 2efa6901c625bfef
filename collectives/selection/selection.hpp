// SPDX-License-Identifier: Apache-2.0
// Which algorithm runs a call: a forced one, a row of the tune table, or the least estimate of the catalogue.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "collectives/selection/tune_table.hpp"

namespace torii {

/// The forced choices of the embedder or a command line; empty or 0: the table decides.
struct Forced {
  std::string algorithm;  ///< empty or "auto"
  std::size_t segment_bytes = 0;
  int slots = 0;
  int window = 0;

  bool operator==(const Forced&) const = default;
};

struct Selected {
  const Algorithm* algorithm = nullptr;
  PlanRequest request;             ///< with the tuning filled in
  std::optional<std::size_t> row;  ///< of the table that serves the call; none when no row fits
  std::string explanation;         ///< why, where a model decides, beside a row or instead of one
  ByteInterval holds;              ///< for all these lengths select() chooses the same algorithm and tuning
};

/// Chooses for a vector of `bytes` bytes (SIZE_MAX: blocks of unequal lengths). `request.tuning` is ignored. In this
/// order:
///  1. the forced algorithm, with the tuning of the first row of the table that fits and names it, or of its own
///  estimate;
///  2. the least estimate of the catalogue, unless the first row of the table that fits names the same algorithm;
///  3. the first row of the table that fits and whose algorithm accepts the request;
///  4. the first algorithm of the catalogue that accepts it.
/// Estimates are for `bytes` rounded up (modelled_bytes.hpp).
/// Estimates leave calls to rows that name their kind of topology, if the row's algorithm does not say otherwise.
/// On a tree of links only rows for trees serve broadcast and reduce: the others were measured on nodes. Rows for
/// switches are made for puts that cost nothing. If a put costs as much as `put_bytes` bytes (Capabilities), segments
/// have at least so many bytes. Bits do not depend on segments. Throws Error{unsupported} with the algorithm's own
/// reason and the list of those that can, when a forced algorithm cannot serve the request.
Selected select(const TuneTable& table, const Forced& forced, PlanRequest request, std::size_t bytes,
                bool several_nodes = false, std::size_t put_bytes = 0);

}  // namespace torii
