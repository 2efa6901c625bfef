// SPDX-License-Identifier: Apache-2.0
// Reads the times of two builds that perf/against ran by turns, and prints new/old for every cell, the slowest first.
#include "perf/common/failure.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "runtime/base/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

namespace torii::perf {
namespace {

using Json = nlohmann::ordered_json;

/// Place, ranks, collective, bytes, memory, timing.
using CellKey = std::tuple<std::string, int, std::string, size_t, std::string, std::string>;

/// Times in us by round. A pair of runs is one round of both sides.
struct Times {
  std::map<int, double> old_us, new_us;
};

struct Cell {
  CellKey key;
  double old_us = 0, new_us = 0;  ///< medians
  double ratio = 0;               ///< median of new/old over the pairs
  double low = 0, high = 0;       ///< quartiles of new/old
  size_t pairs = 0;
  const char* mark = "";
};

struct Results {
  std::map<CellKey, Times> cells;
  std::map<std::string, std::string> commits;  ///< by side
  int64_t wrong = 0;
};

/// Between the two nearest values; `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

/// A line of a perf program, or of compare_mpi, whose MPI is coll/torii. perf/against adds side, round and place.
void add(const Json& json, Results& results) {
  const auto side = json.at("side").get<std::string>();
  if (side != "old" && side != "new") throw Failure(kBadCommandLine, "side '" + side + "' is neither old nor new");
  const bool is_mpi = json.contains("mpi_us");
  const double time_us = json.at(is_mpi ? "mpi_us" : "time_us_median");
  if (!(time_us > 0)) throw Failure(kBadCommandLine, fmt::format("a time of {} us; it must be above 0", time_us));
  const Json& wrong = json.at(is_mpi ? "wrong_mpi" : "wrong");
  if (!wrong.is_null()) results.wrong += wrong.get<int64_t>();
  const CellKey key{
      json.at("place"), json.at("ranks"), json.at("collective"), json.at("bytes"), json.value("memory", "malloc"),
      json.at("timing")};
  Times& times = results.cells[key];
  (side == "old" ? times.old_us : times.new_us)[json.at("round").get<int>()] = time_us;
  // The program that calls MPI is the new build's on both sides.
  if (!is_mpi) results.commits[side] = json.at("commit");
}

double median_of(const std::map<int, double>& times) {
  std::vector<double> values;
  for (const auto& [round, time] : times) values.push_back(time);
  return median(values);
}

Cell to_cell(const CellKey& key, const Times& times) {
  std::vector<double> ratios;
  for (const auto& [round, old_us] : times.old_us) {
    const auto partner = times.new_us.find(round);
    if (partner != times.new_us.end()) ratios.push_back(partner->second / old_us);
  }
  Cell cell;
  cell.key = key;
  cell.pairs = ratios.size();
  if (ratios.empty()) return cell;
  std::sort(ratios.begin(), ratios.end());
  cell.old_us = median_of(times.old_us);
  cell.new_us = median_of(times.new_us);
  cell.ratio = median(ratios);
  cell.low = quantile(ratios, 0.25);
  cell.high = quantile(ratios, 0.75);
  // One pair says nothing; of seven equal pairs all are on one side by chance in one cell of 64.
  if (ratios.size() > 1 && ratios.front() > 1) cell.mark = "slower";
  if (ratios.size() > 1 && ratios.back() < 1) cell.mark = "faster";
  return cell;
}

void print_cell(const Cell& cell) {
  const auto& [place, ranks, collective, bytes, memory, timing] = cell.key;
  fmt::print("{:>8} {:>5} {:>14} {:>6} {:>9} {:>8} {:>11.2f} {:>11.2f} {:>8.3f} {:>8.3f} {:>5}  {}\n", place, ranks,
             collective, bytes == 0 ? "-" : bytes_text(bytes), memory, timing, cell.old_us, cell.new_us, cell.ratio,
             cell.high - cell.low, cell.pairs, cell.mark);
}

/// The geometric mean, since these are ratios: that of 2 and 0.5 is 1.
void print_mean(const std::string& of, const std::vector<Cell>& cells) {
  double sum = 0;
  std::vector<double> ratios;
  for (const Cell& cell : cells) {
    sum += std::log(cell.ratio);
    ratios.push_back(cell.ratio);
  }
  const auto slower = std::ranges::count_if(cells, [](const Cell& cell) { return cell.mark[0] == 's'; });
  const auto faster = std::ranges::count_if(cells, [](const Cell& cell) { return cell.mark[0] == 'f'; });
  fmt::print("# mean new/old {:.3f}, median {:.3f}: {} ({} cells, {} slower, {} faster)\n",
             std::exp(sum / static_cast<double>(cells.size())), median(ratios), of, cells.size(), slower, faster);
}

void print_table(const Results& results, std::vector<Cell> cells) {
  std::ranges::stable_sort(cells, [](const Cell& a, const Cell& b) { return a.ratio > b.ratio; });
  fmt::print(
      "# new/old: median over pairs of runs, below 1 the new build is faster; spread: distance of the quartiles\n");
  fmt::print("# slower, faster: every pair says so\n");
  for (const auto& [side, commit] : results.commits) fmt::print("# {}: commit {}\n", side, commit);
  fmt::print("{:>8} {:>5} {:>14} {:>6} {:>9} {:>8} {:>11} {:>11} {:>8} {:>8} {:>5}\n", "place", "ranks", "collective",
             "size", "memory", "timing", "old(us)", "new(us)", "new/old", "spread", "pairs");
  std::map<std::string, std::vector<Cell>> by_place;
  for (const Cell& cell : cells) {
    print_cell(cell);
    const auto& [place, ranks, collective, bytes, memory, timing] = cell.key;
    by_place[fmt::format("{}, {} ranks", place, ranks)].push_back(cell);
    by_place[timing].push_back(cell);
  }
  for (const auto& [of, some] : by_place) print_mean(of, some);
  print_mean("all", cells);
}

int report(int argc, char** argv) {
  std::string input;
  const CommandLine app("New/old for every cell, from the JSON lines of perf/against.");
  app.add_option("input", input, "JSON lines of perf/against").required();
  if (!parse_command_line(app, argc, argv, "against_report build/release/against.json")) return kOk;
  Results results;
  read_json_lines(input, [&](const Json& json) { add(json, results); });
  std::vector<Cell> cells;
  size_t alone = 0;
  for (const auto& [key, times] : results.cells) {
    Cell cell = to_cell(key, times);
    if (cell.pairs > 0) {
      cells.push_back(cell);
    } else {
      ++alone;
    }
  }
  if (cells.empty()) throw Failure(kBadCommandLine, "'" + input + "' has no cell with times of both sides");
  print_table(results, cells);
  if (alone > 0) fmt::print("# {} cells have times of one side only\n", alone);
  if (results.wrong != 0) fmt::print("# WRONG data: {} elements\n", results.wrong);
  return results.wrong == 0 ? kOk : kWrongData;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  return torii::perf::run_program(argv, [&] { return torii::perf::report(argc, argv); });
}
