// SPDX-License-Identifier: Apache-2.0
// Whether simulated rows show a cliff: a size or a number of ranks where a little more costs far more.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/torii-sim/rows.hpp"

namespace torii::tools {

/// A row, and the request for it: names and sizes in the row are the resulting ones.
struct AskedRow {
  SimRow row;
  std::string algorithm;
  std::size_t bytes = 0;
};

/// Twice the bytes take at least as long, and at most this many times as long.
inline constexpr double kTwiceTheBytesMost = 2.2;
/// On a switch, the times over bound of P and of P + 1 ranks differ by at most this factor.
inline constexpr double kOneRankMoreMost = 1.5;

/// The result of compare_rows().
struct Cliffs {
  int compared = 0;                ///< pairs of rows
  std::vector<std::string> found;  ///< one line for each cliff, with both rows
};

/// Compares the rows of one scan. Rows of one algorithm, topology and number of engines are compared by size, if one
/// has twice the bytes of the other; vectors whose blocks were rounded by more than a twentieth are left out. On a
/// switch, rows of one size are also compared by ranks, if one has one rank more.
Cliffs compare_rows(const std::vector<AskedRow>& rows);

}  // namespace torii::tools
