// SPDX-License-Identifier: Apache-2.0
// The comparison's panels: rows of collectives, columns of rank counts.
#include "perf/compare_chart.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "perf/common/chart.hpp"

namespace torii::perf {

namespace {

double over(double time_us, double limit_us) { return limit_us > 0 ? time_us / limit_us : 0; }

std::vector<double> values_of(const BestRow& row, Scale scale) {
  if (scale == Scale::microseconds)
    return {row.mpi_us, row.torii_malloc_us, row.torii_allocated_us, row.torii_adopted_us};
  return {over(row.mpi_us, row.limit_private_us), over(row.torii_malloc_us, row.limit_private_us),
          over(row.torii_allocated_us, row.mapped_limit_us()), over(row.torii_adopted_us, row.mapped_limit_us())};
}

std::string draw(const std::string& title, Scale scale, const std::vector<BestRow>& rows) {
  const std::vector<Series> series = {{"best MPI", "#c0392b"},
                                      {"torii, malloc", "#2471a3"},
                                      {"torii, allocated", "#1e8449"},
                                      {"torii, adopted", "#b9770e"}};
  const bool any_isolated =
      std::any_of(rows.begin(), rows.end(), [](const BestRow& row) { return row.timing == "isolated"; });
  std::vector<Panel> panels;
  for (const BestRow& row : rows) {
    // A barrier has no size and stands in the table only.
    if (row.bytes == 0 || (any_isolated && row.timing != "isolated")) continue;
    auto panel = std::find_if(panels.begin(), panels.end(),
                              [&](const Panel& p) { return p.row == row.collective && p.column == row.ranks; });
    if (panel == panels.end()) {
      const std::string name = fmt::format("{}, {} ranks, {}", row.collective, row.ranks, row.timing);
      panel = panels.insert(panels.end(), Panel{row.collective, row.ranks, name, {}});
    }
    panel->points.push_back({row.bytes, values_of(row, scale)});
  }
  for (Panel& panel : panels) {
    std::sort(panel.points.begin(), panel.points.end(),
              [](const ChartPoint& a, const ChartPoint& b) { return a.bytes < b.bytes; });
  }
  return draw_chart(title, scale, series, panels);
}

}  // namespace

std::string draw_times(const std::string& title, const std::vector<BestRow>& rows) {
  return draw(title, Scale::microseconds, rows);
}

std::string draw_ratios(const std::string& title, const std::vector<BestRow>& rows) {
  return draw("Time over the limit's; " + title, Scale::ratio, rows);
}

}  // namespace torii::perf
