// SPDX-License-Identifier: Apache-2.0
// tune_perf: times, on one number of ranks, what the tune table in force chooses beside other tunings, other algorithms
// or another table. `torii-info tune` runs it for several numbers of ranks and makes tables and verdicts of its lines.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perf/common/failure.hpp"
#include "perf/common/host.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "perf/tuning/point.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

using Json = nlohmann::ordered_json;

struct Cell {
  torii_collective collective;
  size_t bytes;
};

struct TuneOptions {
  std::vector<Cell> cells;
  Rivals rivals = Rivals::tunings;
  std::vector<std::string> algorithms;
  std::string other_table;  ///< as text
  int ranks = 0, rounds = 7;
  double budget_s = 300, block_ms = 2;
  Timing timing = Timing::isolated;
  bool quiet = false;
  std::string json, tune_file, command, label;
};

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : ",").append(word);
  return text;
}

/// Filled by the command line.
struct Raw {
  std::string algorithms = joined(all_algorithms());
  std::string cells, rivals = "tunings", other, timing = name(Timing::isolated);
};

/// In the order given: the time that a cell leaves goes to those behind it.
void read_cells(const Raw& raw, TuneOptions& options) {
  for (const std::string& word : split_list(raw.cells)) {
    const size_t colon = word.find(':');
    const auto collective = parse_collective(word.substr(0, colon));
    if (!collective || (colon == std::string::npos) != (*collective == TORII_BARRIER)) {
      throw Failure(kBadCommandLine, "--cells '" + word + "' must be COLLECTIVE:SIZE, or barrier");
    }
    options.cells.push_back(
        {*collective, *collective == TORII_BARRIER ? 0 : parse_size("--cells", word.substr(colon + 1))});
  }
}

void read_rivals(const Raw& raw, TuneOptions& options) {
  if (raw.rivals == "algorithms") options.rivals = Rivals::algorithms;
  if (raw.rivals != "table") return;
  options.rivals = Rivals::table;
  if (raw.other.empty()) throw Failure(kBadCommandLine, "--rivals table needs --other FILE");
  std::ifstream file(raw.other);
  if (!file) throw Failure(kBadCommandLine, "--other: cannot read '" + raw.other + "'");
  options.other_table.assign(std::istreambuf_iterator<char>(file), {});
}

void read_lists(const Raw& raw, TuneOptions& options) {
  read_cells(raw, options);
  read_rivals(raw, options);
  options.timing = raw.timing == name(Timing::loop) ? Timing::loop : Timing::isolated;
  options.algorithms = split_list(raw.algorithms);
  for (const std::string& word : options.algorithms) {
    const auto all = all_algorithms();
    if (std::find(all.begin(), all.end(), word) == all.end()) {
      throw Failure(kBadCommandLine, "--algorithms '" + word + "' is unknown: use a list of " + joined(all));
    }
  }
}

void add_numbers(const CommandLine& app, TuneOptions& options) {
  app.add_option("--ranks", options.ranks, "start so many ranks on this machine").range(1, 1024);
  app.add_option("--rounds", options.rounds, "rounds over the candidates of a size, at most")
      .range(1, 1000)
      .show_default();
  app.add_option("--block-ms", options.block_ms, "time of one candidate's block in a round")
      .range(0.01, 1e4)
      .show_default();
  app.add_option("--budget", options.budget_s, "seconds for the whole run").range(0.01, 1e6).show_default();
}

bool parse(int argc, char** argv, TuneOptions& options) {
  Raw raw;
  const CommandLine app(
      "Times the choice of the tune table in force beside others (f32, sum, root 0, topology node). torii-info tune\n"
      "runs it for several numbers of ranks and makes a table or a verdict of the figures.");
  add_numbers(app, options);
  app.add_option("--cells", raw.cells, "what is timed: allreduce:64K,alltoall:256,barrier").required();
  app.add_option("--algorithms", raw.algorithms, "a list of algorithms").show_default();
  app.add_option("--rivals", raw.rivals, "tunings (of all algorithms), algorithms (forced ones), or table")
      .one_of({"tunings", "algorithms", "table"})
      .show_default();
  app.add_option("--timing", raw.timing, "isolated calls, or loop: calls in a row")
      .one_of({name(Timing::isolated), name(Timing::loop)})
      .show_default();
  app.add_option("--other", raw.other, "the tune file of --rivals table");
  app.add_option("--tune-file", options.tune_file, "the table to compare with, instead of TORII_TUNE_FILE's");
  app.add_option("--json", options.json, "append one JSON object per size to this file, - for stdout");
  app.add_option("--command", options.command, "the command line to note in the JSON");
  app.add_option("--label", options.label, "what lines about the progress begin with");
  app.add_flag("--quiet", options.quiet, "print no table, and end with code 0 if cells are missing");
  const char* example = "tune_perf --ranks 2 --cells allreduce:64K,barrier --budget 20 --json tune.json";
  if (!parse_command_line(app, argc, argv, example)) return false;
  read_lists(raw, options);
  return true;
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

Json to_json(const Measured& one) {
  Json json;
  json["algorithm"] = one.choice.algorithm;
  json["segment"] = one.choice.segment_bytes;
  json["slots"] = one.choice.slots;
  json["window"] = one.choice.window;
  json["one_shot"] = one.choice.one_shot;
  json["malloc_us"] = rounded(one.malloc_us);
  json["allocated_us"] = rounded(one.allocated_us);
  json["ratio"] = rounded(one.ratio);
  json["spread"] = rounded(one.spread);
  json["rounds"] = one.rounds;
  return json;
}

/// Rank 0's table and JSON lines.
class TuneLog {
 public:
  TuneLog(const TuneOptions& options, int ranks)
      : options_(options), ranks_(ranks), lines_(options.json, Output::Mode::append), table_(lines_.table()) {
    if (options_.quiet) return;
    fmt::print(table_, "# torii {} commit {}, {} ranks, {}\n", torii_version(), commit(), ranks, host());
    fmt::print(table_, "# {:>14} {:>9} {:>10} {:>6}  {:<34} {:>8}  {}\n", "collective", "size(B)", "candidates",
               "rounds", "best", "table", "table's choice");
  }

  ~TuneLog() { say_progress(""); }
  TuneLog(const TuneLog&) = delete;
  TuneLog& operator=(const TuneLog&) = delete;

  void progress(const Cell& cell, size_t number) const {
    const double left_s = std::max(options_.budget_s - static_cast<double>(now_ns() - begun_ns_) / 1e9, 0.0);
    const std::string bytes = cell.bytes == 0 ? "" : " " + bytes_text(cell.bytes);
    say_progress(fmt::format("{}{} ranks, {} of {} cells, {}{}, {:.0f} s left at most", options_.label, ranks_, number,
                             options_.cells.size(), name(cell.collective), bytes, left_s));
  }

  void add(torii_collective collective, const PointResult& result) {
    if (!options_.quiet) print(collective, result);
    if (!lines_.wanted()) return;
    Json json;
    json["collective"] = name(collective);
    json["ranks"] = ranks_;
    json["bytes"] = result.bytes;
    json["type"] = "f32";
    json["op"] = combines(collective) ? "sum" : "none";
    json["rounds"] = result.rounds;
    json["table"] = to_json(result.table);
    json["candidates"] = Json::array();
    for (const Measured& one : result.candidates) json["candidates"].push_back(to_json(one));
    json["best"] = result.best ? to_json(*result.best) : Json(nullptr);
    json["timing"] = name(options_.timing);
    json["tune_file"] = options_.tune_file;
    json["command"] = options_.command;
    lines_.add(std::move(json));
  }

  void left_out(int points) const {
    if (points > 0 && !options_.quiet) {
      fmt::print(table_, "# {} sizes left out: {} s are over\n", points, options_.budget_s);
    }
  }

 private:
  static void say_progress(const std::string& text) {
    if (isatty(STDERR_FILENO) == 0) return;
    fmt::print(stderr, "\r{:<78}\r{}", "", text);
    std::fflush(stderr);
  }

  void print(torii_collective collective, const PointResult& result) const {
    const bool is_table = !result.best || result.best->ratio >= 1;
    fmt::print(table_, "  {:>14} {:>9} {:>10} {:>6}  {:<34} {:>+7.1f}%  {}, segment {}\n", name(collective),
               result.bytes, result.candidates.size(), result.rounds,
               is_table ? "the table's choice" : to_text(result.best->choice),
               is_table ? 0.0 : 100 * (1 / result.best->ratio - 1), result.table.choice.algorithm,
               result.table.choice.segment_bytes);
    std::fflush(table_);
  }

  const TuneOptions& options_;
  int ranks_;
  int64_t begun_ns_ = now_ns();
  JsonLines lines_;
  std::FILE* table_;
};

PointRequest request_of(const TuneOptions& options, const Cell& cell) {
  PointRequest request;
  request.collective = cell.collective;
  request.bytes = cell.bytes;
  request.rivals = options.rivals;
  request.algorithms = options.algorithms;
  request.table = options.other_table;
  request.rounds = options.rounds;
  request.timing = options.timing;
  request.block_ns = options.block_ms * 1e6;
  return request;
}

int measure_all(const TuneOptions& options) {
  std::string settings =
      "ALGORITHM=auto\nSEGMENT=auto\nSLOTS=0\nWINDOW=0\nTOPOLOGY=node\nDETERMINISM=run\nRANK_MAP=\n"
      "TRANSPORT=shared_memory\n";
  if (!options.tune_file.empty()) settings += "TUNE_FILE=" + options.tune_file + "\n";
  Job job(settings);
  std::vector<size_t> sizes;
  for (const Cell& cell : options.cells) sizes.push_back(cell.bytes);
  Budget budget(job, options.budget_s, sizes);
  Meeting meeting(job);
  std::optional<TuneLog> log;
  if (job.rank() == 0) log.emplace(options, job.ranks());
  int left_out = 0;
  size_t number = 0;
  for (const Cell& cell : options.cells) {
    ++number;
    if (!budget.next()) {
      ++left_out;
      continue;
    }
    if (log) log->progress(cell, number);
    const PointResult result = measure_point(job, meeting, budget, request_of(options, cell));
    if (result.rounds == 0) ++left_out;
    if (log && result.rounds > 0) log->add(cell.collective, result);
  }
  if (log) log->left_out(left_out);
  return left_out == 0 || options.quiet ? kOk : kTimeout;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  using namespace torii::perf;
  return run_program(argv, [&] {
    TuneOptions options;
    if (!parse(argc, argv, options)) return static_cast<int>(kOk);
    start_asked_ranks(options.ranks, argc, argv);
    return measure_all(options);
  });
}
