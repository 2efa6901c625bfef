// SPDX-License-Identifier: Apache-2.0
// Reads what compare_mpi wrote under several settings of MPI, and prints per size the setting with the least MPI time
// and torii's times and ratios within that same process, as a table and an SVG.
#include "perf/common/failure.hpp"
#include "perf/common/names.hpp"
#include "perf/compare_chart.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

namespace torii::perf {
namespace {

using Json = nlohmann::json;

struct Results {
  std::vector<BestRow> rows;
  std::string title;
  int64_t wrong = 0;
};

BestRow to_row(const Json& json) {
  BestRow row;
  row.collective = json.at("collective");
  row.timing = json.at("timing");
  row.mpi = json.at("mpi");
  row.setting = json.at("setting");
  row.algorithm = json.at("algorithm");
  row.ranks = json.at("ranks");
  row.bytes = json.at("bytes");
  row.mpi_us = json.at("mpi_us");
  row.torii_malloc_us = json.at("torii_malloc_us");
  row.torii_allocated_us = json.at("torii_allocated_us");
  row.torii_adopted_us = json.value("torii_adopted_us", 0.0);
  row.ratio_malloc = json.at("ratio_malloc");
  row.ratio_allocated = json.at("ratio_allocated");
  row.ratio_adopted = json.value("ratio_adopted", 0.0);
  return row;
}

/// Keeps of every cell the row with the least MPI time, in the order collective, timing, ranks, bytes.
Results read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Failure(kBadCommandLine, "cannot read '" + path + "'");
  using Key = std::tuple<int, std::string, int, size_t>;
  std::map<Key, BestRow> best;
  Results results;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    try {
      const Json json = Json::parse(line);
      const BestRow row = to_row(json);
      const auto collective = parse_collective(row.collective);
      if (!collective) throw Failure(kBadCommandLine, "unknown collective '" + row.collective + "'");
      const int order = *collective == TORII_ALLREDUCE ? -1 : static_cast<int>(*collective);
      const auto [at, is_new] = best.emplace(Key{order, row.timing, row.ranks, row.bytes}, row);
      if (!is_new && row.mpi_us < at->second.mpi_us) at->second = row;
      results.wrong += json.at("wrong_mpi").get<int64_t>() + json.at("wrong_torii").get<int64_t>();
      results.title =
          fmt::format("torii {} commit {} beside the best MPI of each size, {}", json.at("version").get<std::string>(),
                      json.at("commit").get<std::string>(), json.at("host").get<std::string>());
    } catch (const std::exception& error) {
      throw Failure(kBadCommandLine, fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
  if (best.empty()) throw Failure(kBadCommandLine, "'" + path + "' has no results");
  for (const auto& [key, row] : best) results.rows.push_back(row);
  return results;
}

std::string if_measured(const BestRow& row, double value) {
  return row.torii_adopted_us > 0 ? fmt::format("{:.2f}", value) : "-";
}

void print_table(const Results& results) {
  fmt::print(
      "# {}\n# f32, sum, root 0; times are medians in us; ratio = MPI / torii in one process, above 1 torii is "
      "faster\n",
      results.title);
  fmt::print("{:>14} {:>8} {:>5} {:>6} {:>10} {:>11} {:>6} {:>11} {:>6} {:>11} {:>6}  {:<20} {}\n", "collective",
             "timing", "ranks", "size", "best MPI", "malloc", "ratio", "allocated", "ratio", "adopted", "ratio",
             "algorithm", "MPI and setting");
  for (const BestRow& row : results.rows) {
    fmt::print("{:>14} {:>8} {:>5} {:>6} {:>10.2f} {:>11.2f} {:>6.2f} {:>11.2f} {:>6.2f} {:>11} {:>6}  {:<20} {}, {}\n",
               row.collective, row.timing, row.ranks, row.bytes == 0 ? "-" : short_size(row.bytes), row.mpi_us,
               row.torii_malloc_us, row.ratio_malloc, row.torii_allocated_us, row.ratio_allocated,
               if_measured(row, row.torii_adopted_us), if_measured(row, row.ratio_adopted), row.algorithm, row.mpi,
               row.setting);
  }
  if (results.wrong != 0) fmt::print("# WRONG data: {} elements\n", results.wrong);
}

int report(int argc, char** argv) {
  std::string input, svg;
  CLI::App app("Best MPI setting per size beside torii, from the JSON lines of compare_mpi.");
  app.set_version_flag("--version", std::string("torii ") + torii_version());
  app.add_option("input", input, "JSON lines of compare_mpi")->required();
  app.add_option("--svg", svg, "draw into this file");
  app.footer("Example:\n  compare_report --svg compare.svg compare.json");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    throw Failure(kBadCommandLine, std::string(error.what()) + "; --help lists the flags");
  }
  const Results results = read(input);
  print_table(results);
  if (!svg.empty()) {
    std::ofstream file(svg);
    file << draw_chart(results.title, results.rows);
    file.close();
    if (!file) throw Failure(kBadCommandLine, "cannot write '" + svg + "'");
  }
  return results.wrong == 0 ? kOk : kWrongData;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  try {
    return torii::perf::report(argc, argv);
  } catch (const torii::perf::Failure& failure) {
    fmt::print(stderr, "compare_report: {}\n", failure.what());
    return failure.exit_code();
  }
}
