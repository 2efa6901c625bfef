// SPDX-License-Identifier: Apache-2.0
// Reads what compare_mpi wrote under several settings of MPI, and prints per size the setting with the least MPI time
// and torii's times and ratios within that same process, as a table and an SVG.
#include "perf/common/failure.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "perf/compare_chart.hpp"
#include "runtime/base/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace torii::perf {
namespace {

using Json = nlohmann::ordered_json;

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
  row.limit_private_us = json.value("limit_private_us", 0.0);
  row.limit_mapped_us = json.value("limit_mapped_us", 0.0);
  return row;
}

/// Keeps of every cell the row with the least MPI time, in the order collective, timing, ranks, bytes.
Results read(const std::string& path) {
  using Key = std::tuple<int, std::string, int, size_t>;
  std::map<Key, BestRow> best;
  Results results;
  read_json_lines(path, [&](const Json& json) {
    const BestRow row = to_row(json);
    const auto collective = parse_collective(row.collective);
    if (!collective) throw Failure(kBadCommandLine, "unknown collective '" + row.collective + "'");
    const int order = *collective == TORII_ALLREDUCE ? -1 : static_cast<int>(*collective);
    const auto [at, is_new] = best.emplace(Key{order, row.timing, row.ranks, row.bytes}, row);
    if (!is_new && row.mpi_us < at->second.mpi_us) at->second = row;
    results.wrong += json.at("wrong_mpi").get<int64_t>() + json.at("wrong_torii").get<int64_t>() +
                     json.value("wrong_limits", int64_t{0});
    results.title =
        fmt::format("torii {} commit {} beside the best MPI of each size, {}", json.at("version").get<std::string>(),
                    json.at("commit").get<std::string>(), json.at("host").get<std::string>());
  });
  if (best.empty()) throw Failure(kBadCommandLine, "'" + path + "' has no results");
  for (const auto& [key, row] : best) results.rows.push_back(row);
  return results;
}

/// The median of each figure of every cell over several runs; MPI and setting are those of the first.
Results merge(const std::vector<Results>& runs) {
  Results merged = runs.front();
  if (runs.size() == 1) return merged;
  merged.title += fmt::format(", medians of {} runs", runs.size());
  merged.wrong = 0;
  for (const Results& run : runs) merged.wrong += run.wrong;
  for (BestRow& row : merged.rows) {
    std::vector<const BestRow*> same;
    for (const Results& run : runs) {
      const auto at = std::find_if(run.rows.begin(), run.rows.end(), [&](const BestRow& other) {
        return std::tie(other.collective, other.timing, other.ranks, other.bytes) ==
               std::tie(row.collective, row.timing, row.ranks, row.bytes);
      });
      if (at != run.rows.end()) same.push_back(&*at);
    }
    for (double BestRow::*const figure :
         {&BestRow::mpi_us, &BestRow::torii_malloc_us, &BestRow::torii_allocated_us, &BestRow::torii_adopted_us,
          &BestRow::ratio_malloc, &BestRow::ratio_allocated, &BestRow::ratio_adopted, &BestRow::limit_private_us,
          &BestRow::limit_mapped_us}) {
      std::vector<double> values;
      for (const BestRow* const other : same) values.push_back(other->*figure);
      row.*figure = median(std::move(values));
    }
  }
  return merged;
}

/// One way of torii: its time, how many times faster than MPI it is, and how many times the limit's time it takes.
std::string way_text(double time_us, double ratio, double limit_us) {
  if (time_us <= 0) return fmt::format("{:>10} {:>6} {:>6}", "-", "-", "-");
  const std::string reach = limit_us > 0 ? fmt::format("{:.2f}", time_us / limit_us) : "-";
  return fmt::format("{:>10.2f} {:>6.2f} {:>6}", time_us, ratio, reach);
}

std::string limit_text(double limit_us) { return limit_us > 0 ? fmt::format("{:.2f}", limit_us) : "-"; }

void print_table(const Results& results) {
  fmt::print(
      "# {}\n# f32, sum, root 0; times are medians in us; xMPI = MPI / torii in one process, above 1 torii is faster;\n"
      "# xlim = torii / limit, the fastest hand-written loop on such memory in the same process: 1 is the limit\n",
      results.title);
  fmt::print(
      "{:>14} {:>8} {:>5} {:>6} {:>10} {:>10} {:>6} {:>6} {:>10} {:>6} {:>6} {:>10} {:>6} {:>6} {:>9} {:>9}  {:<20} "
      "{}\n",
      "collective", "timing", "ranks", "size", "best MPI", "malloc", "xMPI", "xlim", "allocated", "xMPI", "xlim",
      "adopted", "xMPI", "xlim", "limit", "mapped", "algorithm", "MPI and setting");
  for (const BestRow& row : results.rows) {
    const double mapped_us = row.mapped_limit_us();
    fmt::print("{:>14} {:>8} {:>5} {:>6} {:>10.2f} {} {} {} {:>9} {:>9}  {:<20} {}, {}\n", row.collective, row.timing,
               row.ranks, row.bytes == 0 ? "-" : bytes_text(row.bytes), row.mpi_us,
               way_text(row.torii_malloc_us, row.ratio_malloc, row.limit_private_us),
               way_text(row.torii_allocated_us, row.ratio_allocated, mapped_us),
               way_text(row.torii_adopted_us, row.ratio_adopted, mapped_us), limit_text(row.limit_private_us),
               limit_text(mapped_us), row.algorithm, row.mpi, row.setting);
  }
  if (results.wrong != 0) fmt::print("# WRONG data: {} elements\n", results.wrong);
}

/// "8 KiB" where a table of programs has 8K.
std::string spaced_bytes_text(size_t bytes) {
  std::string text = bytes_text(bytes);
  const bool has_unit = text.back() > '9';
  return has_unit ? text.substr(0, text.size() - 1) + " " + text.back() + "iB" : text + " B";
}

/// "0.30 | 1.45" and so on: time and ratio.
std::string markdown_way(double time_us, double ratio) {
  return time_us > 0 ? fmt::format("{:.2f} | {:.2f}", time_us, ratio) : "- | -";
}

/// The isolated calls of one collective as a table for documentation.
void print_markdown(const Results& results, const std::string& collective) {
  fmt::print(
      "| ranks | size | best MPI (us) | torii, malloc (us) | ratio | torii, allocated (us) | ratio | torii, adopted "
      "(us) "
      "| ratio | limit, malloc (us) | limit, mapped (us) | best MPI setting "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const BestRow& row : results.rows) {
    if (row.collective != collective || row.timing != "isolated") continue;
    fmt::print("| {} | {} | {:.2f} | {} | {} | {} | {} | {} | {}, {} |\n", row.ranks,
               row.bytes == 0 ? "-" : spaced_bytes_text(row.bytes), row.mpi_us,
               markdown_way(row.torii_malloc_us, row.ratio_malloc),
               markdown_way(row.torii_allocated_us, row.ratio_allocated),
               markdown_way(row.torii_adopted_us, row.ratio_adopted), limit_text(row.limit_private_us),
               limit_text(row.mapped_limit_us()), row.mpi, row.setting);
  }
}

/// The comparisons that torii loses, the worst first, as a sentence for documentation.
void print_lost(const Results& results) {
  std::vector<std::pair<double, std::string>> lost;
  size_t comparisons = 0;
  for (const BestRow& row : results.rows) {
    const std::string cell =
        fmt::format("{}{} on {} ranks{}", row.collective, row.bytes == 0 ? "" : " " + spaced_bytes_text(row.bytes),
                    row.ranks, row.timing == "loop" ? " in a row" : "");
    for (const auto& [ratio, memory] : {std::pair{row.ratio_malloc, ""}, std::pair{row.ratio_allocated, ", allocated"},
                                        std::pair{row.ratio_adopted, ", adopted"}}) {
      if (ratio <= 0) continue;
      ++comparisons;
      if (ratio < 1) lost.emplace_back(ratio, cell + memory);
    }
  }
  std::sort(lost.begin(), lost.end());
  fmt::print("torii lost {} of {} comparisons", lost.size(), comparisons);
  for (size_t i = 0; i < lost.size(); ++i)
    fmt::print("{} {} {:.2f}", i == 0 ? ":" : ";", lost[i].second, lost[i].first);
  fmt::print(".\n");
}

int report(int argc, char** argv) {
  std::vector<std::string> inputs;
  std::string svg, ratios, markdown;
  bool wants_lost = false;
  const CommandLine app("Best MPI setting per size beside torii, from the JSON lines of compare_mpi.");
  app.add_option("inputs", inputs, "JSON lines of compare_mpi; of several runs, medians count").required();
  app.add_option("--svg", svg, "draw times into this file");
  app.add_option("--ratios", ratios, "draw times over the limit's into this file");
  app.add_option("--markdown", markdown, "print this collective's isolated calls as a table in Markdown, nothing else");
  app.add_flag("--lost", wants_lost, "print which comparisons torii loses as a sentence, nothing else");
  if (!parse_command_line(app, argc, argv, "compare_report --svg compare.svg compare.json")) return kOk;
  std::vector<Results> runs;
  for (const std::string& input : inputs) runs.push_back(read(input));
  const Results results = merge(runs);
  if (!markdown.empty()) {
    if (!parse_collective(markdown)) throw Failure(kBadCommandLine, "--markdown '" + markdown + "' is no collective");
    print_markdown(results, markdown);
    return results.wrong == 0 ? kOk : kWrongData;
  }
  if (wants_lost) {
    print_lost(results);
    return results.wrong == 0 ? kOk : kWrongData;
  }
  print_table(results);
  if (!svg.empty()) Output(svg).write(draw_times(results.title, results.rows));
  if (!ratios.empty()) Output(ratios).write(draw_ratios(results.title, results.rows));
  return results.wrong == 0 ? kOk : kWrongData;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  return torii::perf::run_program(argv, [&] { return torii::perf::report(argc, argv); });
}
