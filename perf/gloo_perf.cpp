// SPDX-License-Identifier: Apache-2.0
// Times Gloo's collectives and torii's in one process per rank, on the same buffers, in alternating rounds.
// perf/compare_gloo runs it for several numbers of ranks.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "perf/common/buffers.hpp"
#include "perf/common/failure.hpp"
#include "perf/common/host.hpp"
#include "perf/common/job.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/meeting.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "perf/common/sums.hpp"
#include "perf/gloo_calls.hpp"

namespace torii::perf {
namespace {

constexpr int kWarmUpCalls = 3;

struct GlooOptions {
  std::vector<torii_collective> collectives;
  std::vector<size_t> sizes;
  Timing timing = Timing::isolated;
  Memory memory = Memory::malloced;
  std::string json, settings;
  int ranks = 0;
  int rounds = 9;
  double block_ms = 10;
};

/// Both libraries use the same vectors, with fresh input before each call or loop.
class Way : public Subject {
 public:
  Way(std::string name, CallData& data) : name_(std::move(name)), data_(data) {}
  void prepare(int i) override { data_.refresh(i); }
  const std::string& name() const { return name_; }
  CallData& data() const { return data_; }
  /// The medians of the rounds, in us.
  double median_us() const { return median(rounds_us); }
  double best_us() const { return *std::min_element(rounds_us.begin(), rounds_us.end()); }

  int calls = 0;  ///< in a round
  int64_t wrong = 0;
  std::vector<double> rounds_us;

 private:
  std::string name_;
  CallData& data_;
};

class ToriiWay final : public Way {
 public:
  ToriiWay(std::string name, CallData& data, torii_team* team) : Way(std::move(name), data), team_(team) {}
  torii_status call() override { return torii_run(team_, &data().call()); }

 private:
  torii_team* team_;
};

class GlooWay final : public Way {
 public:
  GlooWay(CallData& data, std::unique_ptr<GlooCall> call) : Way(call->name(), data), call_(std::move(call)) {}
  void prepare(int i) override {
    Way::prepare(i);
    call_->prepare();
  }
  torii_status call() override {
    call_->run();
    return TORII_OK;
  }
  void settle() override { call_->settle(); }

 private:
  std::unique_ptr<GlooCall> call_;
};

/// One call with pattern 0 into a spoilt result. Wrong elements of all ranks.
int64_t check_once(const Job& job, Way& way, bool is_gloo, uint64_t seed) {
  CallData& data = way.data();
  if (data.elements() == 0) return 0;
  data.refresh(0);
  data.spoil_result();
  way.prepare(0);
  job.barrier();
  check(way.call(), "the checked call failed");
  way.settle();
  const bool sums = is_gloo && combines(data.call().collective);
  return job.sum(sums ? count_wrong_sums(job, data, seed) : static_cast<int64_t>(data.count_wrong(job.team(), 0)));
}

/// The ways of one collective and one size. The first one is torii's, the others are Gloo's.
class Cell {
 public:
  Cell(const Job& job, const Gloo& gloo, torii_collective collective, Memory memory, size_t bytes)
      : options_(options_of(collective)), data_(job, options_, memory, bytes, TORII_F32, TORII_SUM) {
    torii_choice choice{};
    choice.size = sizeof(choice);
    check(torii_choose(job.team(), &data_.call(), &choice), "torii does not run this");
    ways_.push_back(std::make_unique<ToriiWay>(choice.algorithm, data_, job.team()));
    for (auto& call : gloo.ways(data_.call())) ways_.push_back(std::make_unique<GlooWay>(data_, std::move(call)));
  }
  const CallData& data() const { return data_; }
  bool is_whole() const { return ways_.size() > 1; }

  void measure(const Job& job, Meeting& meeting, const GlooOptions& options) {
    for (const auto& way : ways_) {
      way->wrong = check_once(job, *way, way != ways_.front(), options_.seed);
      way->calls = warm_up(job, meeting, options.timing, kWarmUpCalls, options.block_ms * 1e6, *way);
    }
    for (size_t round = 0; round < static_cast<size_t>(options.rounds); ++round) {
      for (size_t i = 0; i < ways_.size(); ++i) {
        Way& way = *ways_[(round + i) % ways_.size()];
        const Block block = run_block(job, meeting, options.timing, way.calls, way);
        way.rounds_us.push_back(median(block.durations_ns) / 1e3);
      }
    }
  }
  const Way& torii() const { return *ways_.front(); }
  /// Gloo's algorithm with the least round of all.
  const Way& gloo() const {
    return **std::min_element(ways_.begin() + 1, ways_.end(),
                              [](const auto& one, const auto& other) { return one->best_us() < other->best_us(); });
  }
  int64_t wrong() const {
    int64_t sum = 0;
    for (const auto& way : ways_) sum += way->wrong;
    return sum;
  }
  nlohmann::ordered_json json() const {
    nlohmann::ordered_json json;
    for (const auto& way : ways_) {
      json.push_back({{"library", way == ways_.front() ? "torii" : "gloo"},
                      {"algorithm", way->name()},
                      {"calls", way->calls},
                      {"time_us_median", way->median_us()},
                      {"time_us_best", way->best_us()},
                      {"rounds_us", way->rounds_us},
                      {"wrong", way->wrong}});
    }
    return json;
  }

 private:
  static Options options_of(torii_collective collective) {
    Options options;
    options.collective = collective;
    return options;
  }

  Options options_;
  CallData data_;
  std::vector<std::unique_ptr<Way>> ways_;
};

void print_header(std::FILE* table, const GlooOptions& options, int ranks) {
  std::fprintf(table, "# %s, %d ranks, torii %s commit %s, %s, %s memory, %s, f32 sum\n", Gloo::version().c_str(),
               ranks, torii_version(), commit(), host().c_str(), name(options.memory), name(options.timing));
  std::fprintf(table, "# ratio: Gloo's best round over torii's median; one round: %.3g ms\n", options.block_ms);
  std::fprintf(table, "# %14s %10s %12s %12s %12s %12s %8s %7s %20s %18s\n", "collective", "size(B)", "torii(us)",
               "best(us)", "Gloo(us)", "best(us)", "ratio", "#wrong", "torii's", "Gloo's");
  std::fflush(table);
}

void report(const GlooOptions& options, const Cell& cell, torii_collective collective, int ranks, JsonLines& lines) {
  const Way &torii = cell.torii(), &gloo = cell.gloo();
  const double ratio = gloo.best_us() / torii.median_us();
  std::fprintf(lines.table(), "  %14s %10zu %12.2f %12.2f %12.2f %12.2f %8.1f %7lld %20s %18s\n", name(collective),
               cell.data().bytes(), torii.median_us(), torii.best_us(), gloo.median_us(), gloo.best_us(), ratio,
               static_cast<long long>(cell.wrong()), torii.name().c_str(), gloo.name().c_str());
  std::fflush(lines.table());
  if (!lines.wanted()) return;
  nlohmann::ordered_json json;
  json["collective"] = name(collective);
  json["gloo"] = Gloo::version();
  json["ranks"] = ranks;
  json["bytes"] = cell.data().bytes();
  json["type"] = "f32";
  json["timing"] = name(options.timing);
  json["memory"] = name(options.memory);
  json["ratio"] = ratio;
  json["ways"] = cell.json();
  lines.add(std::move(json));
}

int run_rank(const GlooOptions& options) {
  const Job job(options.settings);
  Meeting meeting(job);
  if (!meeting.shared()) throw Failure(kNotPossible, "no page that all ranks map: the barrier would be torii's own");
  const Gloo gloo(job);
  JsonLines lines(job.rank() == 0 ? options.json : "", Output::Mode::append);
  if (job.rank() == 0) print_header(lines.table(), options, job.ranks());
  int64_t wrong = 0;
  for (const torii_collective collective : options.collectives) {
    for (const size_t bytes : options.sizes) {
      Cell cell(job, gloo, collective, options.memory, bytes);
      if (!cell.is_whole()) {
        throw Failure(kBadCommandLine, std::string("--collective ") + name(collective) + ": Gloo has none");
      }
      cell.measure(job, meeting, options);
      wrong += cell.wrong();
      if (job.rank() == 0) report(options, cell, collective, job.ranks(), lines);
      job.barrier();  // no rank takes an algorithm of Gloo away while another one is still in it
      if (collective == TORII_BARRIER) break;
    }
  }
  return wrong == 0 ? kOk : kWrongData;
}

bool parse(int argc, char** argv, GlooOptions& options) {
  std::string collectives = "allreduce,broadcast,reduce,all_gather,reduce_scatter,alltoall,scatter,gather,barrier";
  std::string sizes = "8,1K,8K,64K,512K,4M,16M", timing = "isolated", memory = "malloc";
  std::vector<std::string> settings;
  const CommandLine app("Times Gloo's collectives and torii's side by side (f32, sum).");
  app.add_option("--ranks", options.ranks, "start so many ranks here").range(1, 1024);
  app.add_option("--collective", collectives, "a list of them").show_default();
  app.add_option("--sizes", sizes, "a list of sizes with K, M or G (1024)").show_default();
  app.add_option("--timing", timing, "isolated or loop").one_of({"isolated", "loop"});
  app.add_option("--memory", memory, "malloc, allocated or adopted")
      .one_of({"malloc", "allocated", "adopted"})
      .show_default();
  app.add_option("--rounds", options.rounds, "rounds of each library").range(1, 1000).show_default();
  app.add_option("--block-ms", options.block_ms, "time of a round").range(0.1, 1e4).show_default();
  app.add_option("--set", settings, "a setting of the library, NAME=value; may be given several times");
  app.add_option("--json", options.json, "append one JSON object per line to this file; -: stdout");
  const std::string version = torii_version() + (", " + Gloo::version());
  if (!parse_command_line(app, argc, argv, "gloo_perf --ranks 2 --sizes 8,64K,4M", version, speaks())) return false;
  for (const std::string& word : split_list(collectives)) {
    const auto collective = parse_collective(word);
    if (!collective) throw Failure(kBadCommandLine, "--collective '" + word + "' is unknown; --help lists them");
    options.collectives.push_back(*collective);
  }
  for (const std::string& word : split_list(sizes)) {
    options.sizes.push_back(parse_size("--sizes", word));
    if (options.sizes.back() > size_t{1} << 32) {
      throw Failure(kBadCommandLine, "--sizes '" + word + "' is more than Gloo's counts take (4G)");
    }
  }
  options.timing = timing == "loop" ? Timing::loop : Timing::isolated;
  for (const Memory kind : {Memory::malloced, Memory::allocated, Memory::adopted}) {
    if (memory == name(kind)) options.memory = kind;
  }
  for (const std::string& line : settings) options.settings += line + "\n";
  return true;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  using namespace torii::perf;
  return run_program(argv, [&] {
    GlooOptions options;
    if (!parse(argc, argv, options)) return static_cast<int>(kOk);
    start_asked_ranks(options.ranks, argc, argv);
    return run_rank(options);
  });
}
