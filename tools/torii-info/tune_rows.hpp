// SPDX-License-Identifier: Apache-2.0
// From measured cells to the rows of a tune file.
#pragma once

#include <string>
#include <vector>

#include "tools/torii-info/tune_lines.hpp"

namespace torii::tools {

/// A new row is worth its place if it is faster by this factor.
inline constexpr double kGainLeast = 1.03;

/// A row for one cell: on one node it serves the numbers of ranks and the sizes down to the next smaller ones that were
/// measured (the least number of ranks: this one only; the least size: down to 0).
struct TunedRow {
  TuneCell cell;
  TuneRow row;
  std::string before;  ///< the algorithm of the built-in table
  double gain = 1;     ///< time with the built-in table over time with the row
};

/// The cells in which the final of a search was won by at least kGainLeast.
std::vector<TunedRow> faster_rows(const std::vector<TuneLine>& search);

/// The rows that passes of both tables by turns confirm: faster by kGainLeast in the median of the passes,
/// and in none slower by more than that. Their gain is the median.
std::vector<TunedRow> confirmed_rows(const std::vector<TunedRow>& rows, const std::vector<TuneLine>& by_turns);

/// The rows with which calls in a row are slower by at most kGainLeast, both kinds of memory together, in the median of
/// the passes with a decision. A search times isolated calls, for which few slots may be enough.
std::vector<TunedRow> rows_good_in_a_row(const std::vector<TunedRow>& rows, std::vector<TuneLine> in_a_row);

/// The tune file: the rows before the built-in rows for nodes, and behind those for tori and switches, since they were
/// measured on one machine.
std::string tune_file_text(const std::vector<TunedRow>& rows, const Json& measured, const MachineShape& machine);

}  // namespace torii::tools
