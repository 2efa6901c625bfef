// SPDX-License-Identifier: Apache-2.0
// curves_perf: allreduce by several forced algorithms on one topology, with several numbers of engines, in alternating
// blocks of one process group. curves_report draws what it writes.
#include <fmt/format.h>

#include <cstdio>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perf/common/alternate.hpp"
#include "perf/common/failure.hpp"
#include "perf/common/host.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

struct CurveOptions {
  int ranks = 0, rounds = 5;
  SizeRange sizes{"64K", "32M"};
  std::string topology = "node", json, command;
  std::vector<std::string> algorithms;
  std::vector<int> engines;
  Memory memory = Memory::malloced;
  double budget_s = 60, block_ms = 10;
};

struct Raw {
  std::string algorithms = "trinaryx3,ring,node", engines = "1,4", memory = "malloc";
};

void read_values(const Raw& raw, CurveOptions& options) {
  options.algorithms = split_list(raw.algorithms);
  for (const std::string& word : split_list(raw.engines)) {
    const int engines = parse_number<int>(word).value_or(-1);
    if (engines < 0 || engines > 99) {
      throw Failure(kBadCommandLine, "--engines '" + word + "' is not a number; use a list like 1,4");
    }
    options.engines.push_back(engines);
  }
  options.sizes.read();
  if (raw.memory != "malloc" && raw.memory != "allocated") {
    throw Failure(kBadCommandLine, "--memory '" + raw.memory + "' is unknown: use malloc or allocated");
  }
  options.memory = raw.memory == "malloc" ? Memory::malloced : Memory::allocated;
}

bool parse(int argc, char** argv, CurveOptions& options) {
  Raw raw;
  const CommandLine app(
      "Times allreduce (f32, sum) by several algorithms and numbers of engines, block by block in turn.");
  app.add_option("--ranks", options.ranks, "start so many ranks on this machine").range(1, 1024);
  app.add_option("--topology", options.topology, "node, torus:2x2x2, mesh:8x8").show_default();
  app.add_option("--algorithms", raw.algorithms, "a list of algorithms").show_default();
  app.add_option("--engines", raw.engines, "a list of numbers of engines").show_default();
  options.sizes.add_flags(app);
  app.add_option("--memory", raw.memory, "malloc or allocated (torii_allocate)").show_default();
  app.add_option("--rounds", options.rounds, "blocks of each curve and size, at most").range(1, 1000).show_default();
  app.add_option("--block-ms", options.block_ms, "time of a block").range(0.01, 1e4).show_default();
  app.add_option("--budget", options.budget_s, "seconds for the whole run").range(0.1, 1e6).show_default();
  app.add_option("--json", options.json, "append one JSON object per line to this file, - for stdout");
  app.add_option("--command", options.command, "the command line to note in the JSON");
  if (!parse_command_line(app, argc, argv, "curves_perf --ranks 8 --topology torus:2x2x2 -e 1M --json curves.json")) {
    return false;
  }
  read_values(raw, options);
  return true;
}

/// The job through which the contexts after the first one join.
const Job* first_job = nullptr;

int exchange(const void* mine, void* all, size_t bytes, void*) {
  try {
    first_job->gather_bytes(mine, all, bytes);
    return 0;
  } catch (const Failure&) {
    return 1;
  }
}

/// A number of engines belongs to a context, so each has one of its own, in the same processes.
class Jobs {
 public:
  explicit Jobs(const CurveOptions& options) {
    for (const int engines : options.engines) {
      const std::string settings =
          "ENGINES=" + std::to_string(engines) + "\nTOPOLOGY=" + options.topology + "\nALGORITHM=auto\n";
      if (jobs_.empty()) {
        first_job = &jobs_.emplace_back(settings);
      } else {
        jobs_.emplace_back(settings, exchange, first_job->rank(), first_job->ranks());
      }
    }
  }
  std::deque<Job>& all() { return jobs_; }
  Job& first() { return jobs_.front(); }

 private:
  std::deque<Job> jobs_;
};

/// One algorithm with one number of engines.
class Curve {
 public:
  Curve(const Job& job, int engines, const std::string& algorithm) : engines_(engines), algorithm_(algorithm) {
    torii_team_options options{};
    options.size = sizeof(options);
    options.algorithm = algorithm.c_str();
    check(torii_team_create(job.context(), &options, &team_), "cannot make a team for " + algorithm);
  }
  ~Curve() { torii_team_destroy(team_); }
  Curve(const Curve&) = delete;
  Curve& operator=(const Curve&) = delete;

  torii_team* team() const { return team_; }
  int engines() const { return engines_; }
  const std::string& algorithm() const { return algorithm_; }

 private:
  int engines_;
  std::string algorithm_;
  torii_team* team_ = nullptr;
};

/// Wrong elements of all ranks after one call with pattern 0.
int64_t check_once(const Job& job, const Curve& curve, CallData& data) {
  data.refresh(0);
  data.spoil_result();
  job.barrier();
  check(torii_run(curve.team(), &data.call()), curve.algorithm() + " failed");
  return job.sum(static_cast<int64_t>(data.count_wrong(curve.team(), 0)));
}

class CurveLog {
 public:
  CurveLog(const CurveOptions& options, int ranks)
      : options_(options), ranks_(ranks), lines_(options.json, Output::Mode::append) {
    fmt::print(lines_.table(), "# torii {} commit {}, {} ranks, {}, {}, {} memory\n", torii_version(), commit(), ranks,
               options.topology, host(), name(options.memory));
    fmt::print(lines_.table(), "# {:>10} {:>20} {:>8} {:>12} {:>10} {:>7} {:>7}\n", "size(B)", "algorithm", "engines",
               "time(us)", "mad(us)", "rounds", "#wrong");
  }
  void add(const Curve& curve, size_t bytes, const std::vector<double>& blocks_us, int64_t wrong) {
    const double middle = median(blocks_us);
    std::vector<double> deviations;
    for (const double us : blocks_us) deviations.push_back(us > middle ? us - middle : middle - us);
    fmt::print(lines_.table(), "  {:>10} {:>20} {:>8} {:>12.2f} {:>10.2f} {:>7} {:>7}\n", bytes, curve.algorithm(),
               curve.engines(), middle, median(deviations), blocks_us.size(), wrong);
    std::fflush(lines_.table());
    if (!lines_.wanted()) return;
    nlohmann::ordered_json json;
    json["collective"] = "allreduce";
    json["algorithm"] = curve.algorithm();
    json["topology"] = options_.topology;
    json["ranks"] = ranks_;
    json["engines"] = curve.engines();
    json["bytes"] = bytes;
    json["memory"] = name(options_.memory);
    json["timing"] = "isolated";
    json["time_us_median"] = middle;
    json["time_us_mad"] = median(deviations);
    json["rounds"] = blocks_us.size();
    json["wrong"] = wrong;
    json["command"] = options_.command;
    lines_.add(std::move(json));
  }
  void left_out(int sizes) const {
    if (sizes > 0) fmt::print(lines_.table(), "# {} sizes left out: {} s are over\n", sizes, options_.budget_s);
  }

 private:
  const CurveOptions& options_;
  int ranks_;
  JsonLines lines_;
};

/// One size: all curves in rounds. Returns the wrong elements; `log` is nullptr on every rank but 0.
int64_t measure_size(Jobs& jobs, Meeting& meeting, const Budget& budget, const CurveOptions& options, size_t bytes,
                     const std::deque<Curve>& curves, CurveLog* log) {
  Options call_options;
  std::deque<CallData> data;
  std::deque<Way> ways;
  std::vector<int64_t> wrong;
  for (Job& job : jobs.all()) {
    data.emplace_back(job, call_options, options.memory, bytes, TORII_F32, TORII_SUM);
    for (size_t a = 0; a < options.algorithms.size(); ++a) {
      const Curve& curve = curves[ways.size()];
      ways.emplace_back(curve.team(), data.back());
      wrong.push_back(check_once(job, curve, data.back()));
    }
  }
  for (int round = 0; round < options.rounds; ++round) {
    if (round > 0 && budget.share_is_over()) break;
    for (size_t i = 0; i < ways.size(); ++i) {
      time_block(jobs.first(), meeting, Timing::isolated, options.block_ms * 1e6,
                 ways[(static_cast<size_t>(round) + i) % ways.size()]);
    }
  }
  int64_t wrong_in_all = 0;
  for (size_t i = 0; i < ways.size(); ++i) {
    wrong_in_all += wrong[i];
    if (log != nullptr) log->add(curves[i], data.front().bytes(), ways[i].blocks_us, wrong[i]);
  }
  return wrong_in_all;
}

int measure_all(const CurveOptions& options) {
  Jobs jobs(options);
  Meeting meeting(jobs.first());
  std::optional<CurveLog> log;
  if (jobs.first().rank() == 0) log.emplace(options, jobs.first().ranks());
  std::deque<Curve> curves;
  for (size_t i = 0; i < options.engines.size(); ++i) {
    for (const std::string& algorithm : options.algorithms)
      curves.emplace_back(jobs.all()[i], options.engines[i], algorithm);
  }
  std::vector<size_t> sizes = options.sizes.sizes();
  if (sizes.back() != options.sizes.end_bytes()) sizes.push_back(options.sizes.end_bytes());
  Budget budget(jobs.first(), options.budget_s, sizes);
  int64_t wrong = 0;
  int left_out = 0;
  for (const size_t bytes : sizes) {
    if (budget.next()) {
      wrong += measure_size(jobs, meeting, budget, options, bytes, curves, log ? &*log : nullptr);
    } else {
      ++left_out;
    }
  }
  if (log) log->left_out(left_out);
  meeting.wait();
  if (wrong != 0) return kWrongData;
  return left_out == 0 ? kOk : kTimeout;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  using namespace torii::perf;
  return run_program(argv, [&] {
    CurveOptions options;
    if (!parse(argc, argv, options)) return static_cast<int>(kOk);
    start_asked_ranks(options.ranks, argc, argv);
    return measure_all(options);
  });
}
