// SPDX-License-Identifier: Apache-2.0
// tune_perf: measures, on one number of ranks, every algorithm and tuning that a tune table may name beside what the
// present table chooses. perf/tune runs it for several numbers of ranks; tune_report makes the table.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perf/common/failure.hpp"
#include "perf/common/host.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "perf/tuning/table.hpp"

namespace torii::perf {
namespace {

using Json = nlohmann::ordered_json;

struct TuneOptions {
  std::vector<torii_collective> collectives;
  std::vector<std::string> algorithms;
  SizeRange sizes{"8", "32M"};
  int ranks = 0, rounds = 7;
  double budget_s = 300, block_ms = 2;
  std::string json, tune_file, command;
};

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : ",").append(word);
  return text;
}

struct Raw {
  std::string collectives = "barrier,broadcast,reduce,allreduce,all_gather,reduce_scatter,alltoall,scatter,gather";
  std::string algorithms = joined(all_algorithms());
};

void read_lists(const Raw& raw, TuneOptions& options) {
  for (const std::string& word : split_list(raw.collectives)) {
    const auto collective = parse_collective(word);
    if (!collective) throw Failure(kBadCommandLine, "--collective '" + word + "' is unknown; --help lists them");
    options.collectives.push_back(*collective);
  }
  options.algorithms = split_list(raw.algorithms);
  for (const std::string& word : options.algorithms) {
    const auto all = all_algorithms();
    if (std::find(all.begin(), all.end(), word) == all.end()) {
      throw Failure(kBadCommandLine, "--algorithms '" + word + "' is unknown: use a list of " + joined(all));
    }
  }
  options.sizes.read();
}

bool parse(int argc, char** argv, TuneOptions& options) {
  Raw raw;
  CLI::App app(
      "Measures what a tune table may choose (f32, sum, root 0, topology node), beside what the table chooses.");
  app.add_option("--ranks", options.ranks, "start so many ranks on this machine")->check(CLI::Range(1, 1024));
  app.add_option("--collective", raw.collectives, "a list of collectives")->capture_default_str();
  app.add_option("--algorithms", raw.algorithms, "a list of algorithms")->capture_default_str();
  options.sizes.add_flags(app);
  app.add_option("--rounds", options.rounds, "rounds over the candidates of a size, at most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--block-ms", options.block_ms, "time of one candidate's block in a round")
      ->check(CLI::Range(0.01, 1e4))
      ->capture_default_str();
  app.add_option("--budget", options.budget_s, "seconds for the whole run")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  app.add_option("--tune-file", options.tune_file, "the table to compare with, instead of TORII_TUNE_FILE's");
  app.add_option("--json", options.json, "append one JSON object per size to this file, - for stdout");
  app.add_option("--command", options.command, "the command line to note in the JSON");
  const char* example = "tune_perf --ranks 2 --collective allreduce -b 8 -e 1M --budget 20 --json tune.json";
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
    fmt::print(table_, "# torii {} commit {}, {} ranks, {}\n", torii_version(), commit(), ranks, host());
    fmt::print(table_, "# {:>14} {:>9} {:>10} {:>6}  {:<34} {:>8}  {}\n", "collective", "size(B)", "candidates",
               "rounds", "best", "table", "table's choice");
  }

  void progress(torii_collective collective, size_t bytes) const {
    if (isatty(STDERR_FILENO) == 0) return;
    fmt::print(stderr, "\r{:<70}\r", fmt::format("{} ranks, {}, {} ...", ranks_, name(collective), bytes));
    std::fflush(stderr);
  }

  void add(torii_collective collective, const PointResult& result) {
    const Measured* best = &best_of(result);
    const bool is_table = best == &result.table;
    fmt::print(table_, "  {:>14} {:>9} {:>10} {:>6}  {:<34} {:>+7.1f}%  {}, segment {}\n", name(collective),
               result.bytes, result.candidates.size(), result.rounds,
               is_table ? "the table's choice" : to_text(best->choice), 100 * (1 / best->ratio - 1),
               result.table.choice.algorithm, result.table.choice.segment_bytes);
    std::fflush(table_);
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
    json["tune_file"] = options_.tune_file;
    json["command"] = options_.command;
    lines_.add(std::move(json));
  }

  void left_out(int points) const {
    if (points > 0) fmt::print(table_, "# {} sizes left out: {} s are over\n", points, options_.budget_s);
  }

 private:
  const TuneOptions& options_;
  int ranks_;
  JsonLines lines_;
  std::FILE* table_;
};

/// Short vectors first: the time that they leave goes to the long ones.
std::vector<PointRequest> points(const TuneOptions& options, size_t ranks) {
  std::vector<PointRequest> list;
  for (const size_t bytes : options.sizes.sizes()) {
    for (const torii_collective collective : options.collectives) {
      // Lengths below one element per block are all rounded to the same one.
      const size_t least = has_blocks(collective) ? ranks * sizeof(float) : sizeof(float);
      if (bytes > options.sizes.begin_bytes() && (collective == TORII_BARRIER || bytes <= least)) continue;
      PointRequest point;
      point.collective = collective;
      point.bytes = collective == TORII_BARRIER ? 0 : bytes;
      point.algorithms = options.algorithms;
      point.rounds = options.rounds;
      point.block_ns = options.block_ms * 1e6;
      list.push_back(point);
    }
  }
  return list;
}

int measure_all(const TuneOptions& options) {
  std::string settings = "ALGORITHM=auto\nSEGMENT=auto\nSLOTS=0\nWINDOW=0\nTOPOLOGY=node\nDETERMINISM=run\n";
  if (!options.tune_file.empty()) settings += "TUNE_FILE=" + options.tune_file + "\n";
  Job job(settings);
  Meeting meeting(job);
  std::optional<TuneLog> log;
  if (job.rank() == 0) log.emplace(options, job.ranks());
  const std::vector<PointRequest> list = points(options, static_cast<size_t>(job.ranks()));
  std::vector<size_t> sizes;
  for (const PointRequest& point : list) sizes.push_back(point.bytes);
  Budget budget(job, options.budget_s, sizes);
  int left_out = 0;
  for (const PointRequest& point : list) {
    if (!budget.next()) {
      ++left_out;
      continue;
    }
    if (log) log->progress(point.collective, point.bytes);
    const PointResult result = measure_point(job, meeting, budget, point);
    if (result.rounds == 0) ++left_out;
    if (log && result.rounds > 0) log->add(point.collective, result);
  }
  if (log) log->left_out(left_out);
  return left_out == 0 ? kOk : kTimeout;
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
