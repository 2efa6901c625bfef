// SPDX-License-Identifier: Apache-2.0
// From measured points to the rows of a tune table.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "perf/tuning/point.hpp"

namespace torii::perf {

inline constexpr size_t kAnyBytes = std::numeric_limits<size_t>::max();
/// More ranks than this do not share a node: what was measured on one says nothing about them.
inline constexpr int kAnyRanks = 256;

/// What tune_perf measured for one collective, number of ranks and length.
struct Point {
  torii_collective collective = TORII_ALLREDUCE;
  int ranks = 0;
  PointResult result;
};

/// One row of a tune table: it serves `ranks_min`..`ranks_max` ranks and up to `bytes_max` bytes.
struct TableRow {
  torii_collective collective = TORII_ALLREDUCE;
  int ranks_min = 1, ranks_max = kAnyRanks;
  size_t bytes_max = kAnyBytes;
  Choice choice;
};

/// The fastest candidate of a point, or the table's choice when that is faster than all.
const Measured& best_of(const PointResult& result);

/// Takes in what another pass measured for the point beside the same table: times and ratios become geometric means,
/// and who was dropped in either is out.
void add_pass(PointResult& all, const PointResult& pass);

/// Rows in the order in which they are tried. Going up the lengths, a row goes on as long as one candidate is within
/// `within` of the best at every length of the row, or within the spread of both (at most 10 %) where that is more;
/// that gives the fewest rows. Of several such candidates the row takes the fastest, where two differ by less than 1 %
/// over the row the one that serves more points of the collective. A row ends at the last length measured for it. A
/// number of ranks serves itself and those down to the next lower one that was measured; the greatest serves all above
/// (one_shot with up to 2 KiB only, above its double). The last row of a collective names `node`, which refuses no call
/// of up to 256 ranks, for calls that earlier rows refuse.
std::vector<TableRow> make_rows(std::vector<Point> points, double within);

/// The row that make_rows() has for a call, as selection picks it, provided no algorithm refuses; nullptr: none.
const TableRow* find_row(const std::vector<TableRow>& rows, torii_collective collective, int ranks, size_t bytes);

/// `measured` is a line of JSON that says where the rows come from.
std::string to_json_text(const std::vector<TableRow>& rows, const std::string& measured);

}  // namespace torii::perf
