// SPDX-License-Identifier: Apache-2.0
// tune_report: reads what tune_perf measured, says how far the compared table is from the best candidate of each point,
// and writes a tune table.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "perf/common/failure.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "perf/tuning/table.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

using Json = nlohmann::ordered_json;

struct Run {
  std::vector<Point> points;
  std::string compared;  ///< the table that was measured beside the candidates
  Json measured;         ///< where the figures come from
};

Measured to_measured(const Json& json) {
  Measured one;
  one.choice = {json.at("algorithm"), json.at("segment"), json.at("slots"), json.at("window"), json.at("one_shot")};
  one.malloc_us = json.at("malloc_us");
  one.allocated_us = json.at("allocated_us");
  one.ratio = json.at("ratio");
  one.spread = json.at("spread");
  one.rounds = json.at("rounds");
  if (!(one.ratio > 0)) throw Failure(kBadCommandLine, "\"ratio\" is " + json.at("ratio").dump() + ", not above 0");
  return one;
}

Point to_point(const Json& json) {
  Point point;
  const auto collective = parse_collective(json.at("collective").get<std::string>());
  if (!collective) throw Failure(kBadCommandLine, "\"collective\" is " + json.at("collective").dump());
  point.collective = *collective;
  point.ranks = json.at("ranks");
  point.result.bytes = json.at("bytes");
  point.result.rounds = json.at("rounds");
  point.result.table = to_measured(json.at("table"));
  for (const Json& one : json.at("candidates")) point.result.candidates.push_back(to_measured(one));
  return point;
}

Run read(const std::string& path) {
  Run run;
  std::set<int> ranks;
  size_t least = kAnyBytes, most = 0;
  read_json_lines(path, [&](const Json& json) {
    const Point point = to_point(json);
    const auto same = std::find_if(run.points.begin(), run.points.end(), [&](const Point& other) {
      return other.collective == point.collective && other.ranks == point.ranks &&
             other.result.bytes == point.result.bytes;
    });
    if (same == run.points.end()) {
      run.points.push_back(point);
    } else if (same->result.table.choice == point.result.table.choice) {
      add_pass(same->result, point.result);
    } else {
      throw Failure(kBadCommandLine,
                    "a second point of equal collective, ranks and bytes was compared with another choice: " +
                        to_text(point.result.table.choice) + ", not " + to_text(same->result.table.choice));
    }
    ranks.insert(point.ranks);
    if (point.collective != TORII_BARRIER) {
      least = std::min(least, point.result.bytes);
      most = std::max(most, point.result.bytes);
    }
    const auto tune_file = json.at("tune_file").get<std::string>();
    run.compared = tune_file.empty() ? "the table in force" : tune_file;
    for (const char* key : {"host", "commit", "version", "command"}) run.measured[key] = json.at(key);
  });
  if (run.points.empty()) throw Failure(kBadCommandLine, "'" + path + "' has no points");
  run.measured["ranks"] = ranks;
  if (most > 0) run.measured["bytes"] = {least, most};
  return run;
}

/// Distances from the best, over all points.
class Distances {
 public:
  void add(double ratio) {
    logarithms_ += std::log(ratio);
    worst_ = std::max(worst_, ratio);
    ++points_;
    if (ratio > 1.03) ++far_;
  }
  void print(const std::string& what) const {
    if (points_ == 0) return;
    fmt::print("# {}: {:+.1f} % in the geometric mean, {:+.1f} % at worst, over 3 % at {} of {} points\n", what,
               100 * (std::exp(logarithms_ / points_) - 1), 100 * (worst_ - 1), far_, points_);
  }

 private:
  double logarithms_ = 0, worst_ = 1;
  int points_ = 0, far_ = 0;
};

double ratio_of(const PointResult& result, const Choice& choice) {
  for (const Measured& one : result.candidates) {
    if (one.choice == choice) return one.ratio;
  }
  return 0;
}

void print_points(const Run& run, const std::vector<TableRow>& rows) {
  Distances compared, made;
  fmt::print("# time over the best candidate's: of {} and of the rows made here\n", run.compared);
  fmt::print("# {:>14} {:>5} {:>6} {:>10} {:>13}  {:<32} {:>8} {:>8}\n", "collective", "ranks", "size", "malloc(us)",
             "allocated(us)", "best", "compared", "made");
  for (const Point& point : run.points) {
    const Measured& best = best_of(point.result);
    const bool is_table = &best == &point.result.table;
    compared.add(1 / best.ratio);
    const TableRow* row = find_row(rows, point.collective, point.ranks, point.result.bytes);
    const double of_row = row == nullptr ? 0 : ratio_of(point.result, row->choice) / best.ratio;
    if (of_row > 0) made.add(of_row);
    fmt::print("  {:>14} {:>5} {:>6} {:>10.2f} {:>13.2f}  {:<32} {:>+7.1f}% {:>8}\n", name(point.collective),
               point.ranks, point.result.bytes == 0 ? "-" : bytes_text(point.result.bytes), best.malloc_us,
               best.allocated_us, is_table ? "the compared table's" : to_text(best.choice), 100 * (1 / best.ratio - 1),
               of_row > 0 ? fmt::format("{:+.1f}%", 100 * (of_row - 1)) : "-");
  }
  compared.print(run.compared);
  made.print(fmt::format("the {} rows made here", rows.size()));
}

int report(int argc, char** argv) {
  std::string input, table;
  double within_percent = 3;
  CLI::App app("Distance of a tune table from the best, and a new table, from the JSON lines of tune_perf.");
  app.add_option("input", input, "JSON lines of tune_perf")->required();
  app.add_option("--table", table, "write a tune table to this file, - for stdout alone");
  app.add_option("--within", within_percent, "per cent that a row's choice may be behind the best of a size")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  if (!parse_command_line(app, argc, argv, "tune_report --table tune_table.json tune.json")) return kOk;
  const Run run = read(input);
  const std::vector<TableRow> rows = make_rows(run.points, within_percent / 100);
  const std::string text = to_json_text(rows, run.measured.dump());
  if (table != "-") print_points(run, rows);
  Output(table).write(text);
  return kOk;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  return torii::perf::run_program(argv, [&] { return torii::perf::report(argc, argv); });
}
