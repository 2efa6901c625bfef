// SPDX-License-Identifier: Apache-2.0
// The range of `torii-sim --scan`: shapes, ranks, engines and sizes, as on the command line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace torii::tools {

/// From `low` to `high`, both included.
struct Range {
  int low = 0;
  int high = 0;
};

/// Every combination is simulated. An empty list: the value of the other flags.
struct Scan {
  std::vector<std::string> topologies;
  std::vector<int> ranks;  ///< of `node`
  std::vector<int> engines;
  std::vector<std::size_t> bytes;
};

/// Reads `shapes=2..12x2..12` (extents as in a topology's text, each a number or a range, with the suffix m for a
/// dimension that does not wrap, several with commas; `kind` is torus or mesh), `ranks=2..64,127..129`, `engines=1..8`
/// and `bytes=1K..1M` (each four times the one before; twice with `bytes=1K..1M*2`). Throws Error{invalid_argument}
/// with the given text and the correct form.
Scan read_scan(const std::vector<std::string>& texts, std::string_view kind);

}  // namespace torii::tools
