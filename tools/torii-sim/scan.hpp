// SPDX-License-Identifier: Apache-2.0
// What `torii-sim --scan` goes through: shapes, ranks, engines and sizes, as written on the command line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace torii::tools {

/// From `low` to `high`, both among them.
struct Range {
  int low = 0;
  int high = 0;
};

/// Every combination is simulated. An empty list: as the other flags say.
struct Scan {
  std::vector<std::string> topologies;
  std::vector<int> ranks;  ///< of `node`
  std::vector<int> engines;
  std::vector<std::size_t> bytes;
};

/// Reads `shapes=2..12x2..12` (extents as in a topology's text, each a number or a range, with the suffix m of a
/// dimension that does not wrap; `kind` is torus or mesh), `ranks=2..64,127..129`, `engines=1..8` and `bytes=1K..1M`
/// (each four times the one before; with `bytes=1K..1M*2` twice). Throws Error{invalid_argument} with what was given
/// and what would be right.
Scan read_scan(const std::vector<std::string>& texts, std::string_view kind);

}  // namespace torii::tools
