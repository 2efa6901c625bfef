// SPDX-License-Identifier: Apache-2.0
// Whether what has been simulated has a cliff: a size or a number of ranks where a little more costs far more.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/torii-sim/rows.hpp"

namespace torii::tools {

/// A row, and what was asked for to get it: names and sizes in the row are those that came of it.
struct AskedRow {
  SimRow row;
  std::string algorithm;
  std::size_t bytes = 0;
};

/// Twice the bytes take at least as long and at most so many times as long.
inline constexpr double kTwiceTheBytesMost = 2.2;
/// On a switch, time over bound of P and of P + 1 ranks differ by at most this factor.
inline constexpr double kOneRankMoreMost = 1.5;

/// What compare_rows() found.
struct Cliffs {
  int compared = 0;                ///< pairs of rows
  std::vector<std::string> found;  ///< one line for each cliff, with both rows
};

/// Compares the rows of one scan: those of one algorithm, topology and number of engines by size, where one has twice
/// the bytes of the other (vectors whose blocks were rounded by more than a twentieth are left out), and on a switch
/// those of one size by ranks, where one has one rank more.
Cliffs compare_rows(const std::vector<AskedRow>& rows);

}  // namespace torii::tools
