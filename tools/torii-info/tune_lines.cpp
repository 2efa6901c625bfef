// SPDX-License-Identifier: Apache-2.0
// Reads lines of tune_perf.
#include "tools/torii-info/tune_lines.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"

namespace torii::tools {

std::string to_text(const TuneCell& cell) {
  const std::string bytes = cell.collective == Collective::barrier ? "" : ", " + bytes_text(cell.bytes);
  return fmt::format("{}, {} ranks{}", name(cell.collective), cell.ranks, bytes);
}

TuneLine parse_tune_line(const Json& json) {
  try {
    TuneLine line;
    const auto collective = parse_collective(json.at("collective").get<std::string>());
    if (!collective) throw Error(Status::internal, "no collective: " + json.at("collective").dump());
    line.cell = {*collective, json.at("ranks"), json.at("bytes")};
    const Json& table = json.at("table");
    line.algorithm = table.at("algorithm");
    line.segment_bytes = table.at("segment");
    line.malloc_us = table.at("malloc_us");
    line.allocated_us = table.at("allocated_us");
    // Without a final no candidate was faster; the fastest one says by how much it was slower.
    Json best = json.at("best");
    if (best.is_null()) {
      for (const Json& one : json.at("candidates")) {
        if (one.at("rounds") != json.at("rounds")) continue;
        if (best.is_null() || one.at("ratio") < best.at("ratio")) best = one;
      }
      if (best.is_null()) return line;
      line.is_decided = best.at("ratio") >= 1;
      if (!line.is_decided) best["ratio"] = 1;  // time was over before the final
    } else {
      line.is_decided = true;
    }
    line.ratio = best.at("ratio");
    line.rival = best.at("algorithm");
    const Algorithm* const rival = find_algorithm(line.rival);
    if (rival == nullptr) throw Error(Status::internal, "no algorithm: " + line.rival);
    line.rival_row.algorithm = rival->name;
    line.rival_row.tuning.segment_bytes = best.at("segment");
    line.rival_row.tuning.slots = best.at("slots");
    line.rival_row.tuning.window = best.at("window");
    line.rival_row.tuning.one_shot = best.at("one_shot");
    if (line.rival_row.tuning.slots > 0) {
      line.rival +=
          fmt::format(" {}/{}/{}{}", bytes_text(line.rival_row.tuning.segment_bytes), line.rival_row.tuning.slots,
                      line.rival_row.tuning.window, line.rival_row.tuning.one_shot ? " one_shot" : "");
    }
    return line;
  } catch (const Json::exception& error) {
    throw Error(Status::internal, std::string("a line of tune_perf cannot be read: ") + error.what());
  }
}

std::map<TuneCell, TuneFigure> medians(const std::vector<TuneLine>& lines) {
  std::map<TuneCell, std::vector<TuneLine>> by_cell;
  for (const TuneLine& line : lines) by_cell[line.cell].push_back(line);
  std::map<TuneCell, TuneFigure> figures;
  for (auto& [cell, passes] : by_cell) {
    std::ranges::sort(passes, {}, &TuneLine::ratio);
    std::vector<double> ratios;
    for (const TuneLine& line : passes) ratios.push_back(line.ratio);
    TuneFigure figure = {passes[passes.size() / 2], static_cast<int>(passes.size())};
    figure.line.ratio = median_of(ratios);
    figures[cell] = figure;
  }
  return figures;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 1;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace torii::tools
