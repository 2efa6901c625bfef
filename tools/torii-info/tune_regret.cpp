// SPDX-License-Identifier: Apache-2.0
// Regret as text and JSON.
#include "tools/torii-info/tune_regret.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/numbers.hpp"
#include "tools/exit_codes.hpp"

namespace torii::tools {
namespace {

double regret_of(const TuneLine& line) { return line.rival.empty() ? 1 : std::max(1.0, 1 / line.ratio); }

double rounded(double value) { return std::round(value * 1000) / 1000; }

std::string heading(const RegretRun& run) {
  return fmt::format(
             "regret of {}: time of what auto selects over the time of the best forced algorithm\n"
             "f32, sum, root 0; isolated calls; malloc'ed and allocated memory together; median of {} passes\n",
             run.table, run.passes) +
         fmt::format("{:<15} {:>5} {:>6}  {:<19} {:>11} {:>14}  {:<19} {:>6}\n", "collective", "ranks", "bytes", "auto",
                     "malloc (us)", "allocated (us)", "best other", "regret");
}

}  // namespace

Report report_regret(const RegretRun& run, const std::vector<TuneLine>& lines) {
  const std::map<TuneCell, TuneFigure> figures = medians(lines);
  Report report;
  report.text = heading(run);
  report.json = {{"table", run.table}, {"passes", run.passes}, {"cells", Json::array()}};
  std::vector<double> regrets;
  double worst = 1;
  std::string worst_cell;
  bool is_whole = figures.size() == run.cells;
  for (const auto& [cell, figure] : figures) {
    const TuneLine& line = figure.line;
    const double regret = regret_of(line);
    regrets.push_back(regret);
    is_whole = is_whole && figure.passes == run.passes;
    if (regret > worst) {
      worst = regret;
      worst_cell = to_text(cell) + ", where " + line.rival + " is faster than " + line.algorithm;
    }
    report.text +=
        fmt::format("{:<15} {:>5} {:>6}  {:<19} {:>11.2f} {:>14.2f}  {:<19} {:>6.2f}{}\n", name(cell.collective),
                    cell.ranks, cell.collective == Collective::barrier ? "-" : bytes_text(cell.bytes), line.algorithm,
                    line.malloc_us, line.allocated_us, line.rival.empty() ? "none" : line.rival, regret,
                    regret > kRegretWorstMax ? "  above the limit" : "");
    report.json["cells"].push_back({{"collective", name(cell.collective)},
                                    {"ranks", cell.ranks},
                                    {"bytes", cell.bytes},
                                    {"passes", figure.passes},
                                    {"auto", line.algorithm},
                                    {"segment", line.segment_bytes},
                                    {"malloc_us", line.malloc_us},
                                    {"allocated_us", line.allocated_us},
                                    {"best_other", line.rival},
                                    {"regret", rounded(regret)}});
  }
  const double median = median_of(regrets);
  const bool is_good = !regrets.empty() && median <= kRegretMedianMax && worst <= kRegretWorstMax;
  if (!is_whole) {
    report.text += fmt::format("{} of {} cells were measured, some perhaps in fewer passes: time was over\n",
                               figures.size(), run.cells);
  }
  report.text += fmt::format("regret: median {:.3f} (limit {}), worst {:.3f} (limit {}){}\n", median, kRegretMedianMax,
                             worst, kRegretWorstMax, worst_cell.empty() ? "" : ": " + worst_cell);
  report.json["median"] = rounded(median);
  report.json["worst"] = rounded(worst);
  report.json["worst_cell"] = worst_cell;
  report.json["complete"] = is_whole;
  report.json["good"] = is_good;
  report.code = is_good || regrets.empty() ? (is_whole ? kDone : kTimedOut) : kWrong;
  return report;
}

}  // namespace torii::tools
