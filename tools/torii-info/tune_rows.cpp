// SPDX-License-Identifier: Apache-2.0
// One row for each cell that gained.
#include "tools/torii-info/tune_rows.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "tools/torii-info/tune.hpp"

namespace torii::tools {

std::vector<TunedRow> faster_rows(const std::vector<TuneLine>& search) {
  std::set<int> ranks;
  std::set<TuneCell> cells;
  for (const TuneLine& line : search) {
    ranks.insert(line.cell.ranks);
    cells.insert(line.cell);
  }
  std::vector<TunedRow> rows;
  for (const auto& [cell, figure] : medians(search)) {
    if (figure.line.ratio > 1 / kGainLeast) continue;
    TunedRow tuned = {cell, figure.line.rival_row, figure.line.algorithm, 1 / figure.line.ratio};
    const auto fewer = ranks.find(cell.ranks);
    tuned.row.topology = Topology::Kind::node;
    tuned.row.collective = cell.collective;
    tuned.row.ranks_min = fewer == ranks.begin() ? cell.ranks : *std::prev(fewer) + 1;
    tuned.row.ranks_max = cell.ranks;
    const auto here = cells.find(cell);
    const bool is_least =
        here == cells.begin() || std::prev(here)->collective != cell.collective || std::prev(here)->ranks != cell.ranks;
    tuned.row.bytes_min = is_least ? 0 : std::prev(here)->bytes + 1;
    if (cell.collective != Collective::barrier) tuned.row.bytes_max = cell.bytes;
    rows.push_back(tuned);
  }
  return rows;
}

std::vector<TunedRow> confirmed_rows(const std::vector<TunedRow>& rows, const std::vector<TuneLine>& by_turns) {
  const std::map<TuneCell, TuneFigure> figures = medians(by_turns);
  std::vector<TunedRow> confirmed;
  for (TunedRow tuned : rows) {
    const auto figure = figures.find(tuned.cell);
    if (figure == figures.end() || figure->second.line.ratio > 1 / kGainLeast) continue;
    if (std::ranges::any_of(by_turns,
                            [&](const TuneLine& line) { return line.cell == tuned.cell && line.ratio > kGainLeast; })) {
      continue;
    }
    tuned.gain = 1 / figure->second.line.ratio;
    confirmed.push_back(tuned);
  }
  return confirmed;
}

std::vector<TunedRow> rows_good_in_a_row(const std::vector<TunedRow>& rows, std::vector<TuneLine> in_a_row) {
  std::erase_if(in_a_row, [](const TuneLine& line) { return !line.is_decided; });
  const std::map<TuneCell, TuneFigure> figures = medians(in_a_row);
  std::vector<TunedRow> good;
  std::ranges::copy_if(rows, std::back_inserter(good), [&](const TunedRow& tuned) {
    const auto figure = figures.find(tuned.cell);
    return figure != figures.end() && figure->second.line.ratio <= kGainLeast;
  });
  return good;
}

std::string tune_file_text(const std::vector<TunedRow>& rows, const Json& measured, const MachineShape& machine) {
  const Json shape = {{"cpus", machine.cpus},
                      {"l3_groups", machine.l3_groups},
                      {"numa_nodes", machine.numa_nodes},
                      {"ranks", machine.ranks}};
  std::string text = "{\n  \"version\": " + std::to_string(TuneTable::kVersion) + ",\n";
  text += "  \"measured\": " + measured.dump(-1, ' ', false, Json::error_handler_t::replace) + ",\n";
  text += "  \"machine\": " + shape.dump() + ",\n  \"rows\": [\n    \"built-in torus\",\n    \"built-in switch\",\n";
  for (const TunedRow& tuned : rows) text += "    " + row_json(tuned.row).dump() + ",\n";
  return text + "    \"built-in node\"\n  ]\n}\n";
}

}  // namespace torii::tools
