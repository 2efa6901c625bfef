// SPDX-License-Identifier: Apache-2.0
// varied_perf.openmpi and varied_perf.mpich: time sequences of calls as programs make them, pass by pass: each call has
// another length, another root, or another collective than the call before. torii and that MPI run each pass in turn in
// one process. Started by mpirun; torii joins through MPI_Allgather.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "perf/common/failure.hpp"
#include "perf/common/job.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/meeting.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "perf/mpi_calls.hpp"
#include "perf/sequences/sequence.hpp"
#include "perf/sequences/sequence_way.hpp"

namespace torii::perf {
namespace {

/// The counters of a context (torii_counters).
constexpr size_t kCounters = 5;
constexpr std::array<const char*, kCounters> kCounterNames = {"call_plans", "installed_plans", "staging_bytes",
                                                              "cold_messages", "sleeps"};

struct VariedOptions {
  std::vector<std::string> names, files;
  std::string json, setting, command;
  int calls = 200, passes = 8;
  size_t seed = 1;
};

/// What each pass of one way took; equal on all ranks.
struct Passes {
  std::vector<double> us;                                ///< of a call, on average
  std::vector<int64_t> faults;                           ///< pages touched for the first time, by all ranks
  std::vector<std::array<int64_t, kCounters>> counters;  ///< of torii's, of all ranks

  double first() const { return us.front(); }
  /// The median of the passes from the middle on, the first one left out.
  double later() const {
    const auto from = static_cast<ptrdiff_t>(std::max<size_t>(1, us.size() / 2));
    return us.size() == 1 ? us[0] : median({us.begin() + from, us.end()});
  }
};

struct SequenceResult {
  Passes mpi, torii;
  int64_t wrong = 0;
  size_t calls = 0;
};

int64_t faults_so_far() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

std::array<int64_t, kCounters> counters_so_far(const torii_context* context) {
  torii_counters own{};
  own.size = sizeof(own);
  check(torii_context_counters(context, &own), "cannot read the counters");
  std::array<int64_t, kCounters> values{};
  std::ranges::copy(std::array{own.call_plans, own.installed_plans, own.staging_bytes, own.cold_messages, own.sleeps},
                    values.begin());
  return values;
}

void time_pass(const Job& job, Meeting& meeting, SequenceWay& way, Passes& passes) {
  way.next_pass();
  const int64_t before = faults_so_far();
  const Block block = run_block(job, meeting, Timing::isolated, 1, way);
  passes.faults.push_back(job.sum(faults_so_far() - before));
  passes.us.push_back(block.durations_ns[0] / 1e3 / static_cast<double>(way.calls()));
}

/// Bytes, over all ranks, in which the calls of the last pass give other results on one way than on the other.
int64_t count_different(const Job& job, SequenceWay& one, SequenceWay& other) {
  int64_t different = 0;
  for (size_t i = 0; i < one.calls(); ++i) {
    one.make_one(i);
    Mpi::barrier();
    other.make_one(i);
    Mpi::barrier();
    different += static_cast<int64_t>(one.count_different(i, other));
  }
  return job.sum(different);
}

SequenceResult measure(const Job& job, Meeting& meeting, SequenceSource& source, const VariedOptions& options,
                       bool torii_begins) {
  SequenceResult result;
  ToriiWay torii(job, source);
  MpiWay mpi(job, source);
  for (int pass = 0; pass < options.passes; ++pass) {
    const bool torii_first = torii_begins == (pass % 2 == 0);
    if (!torii_first) time_pass(job, meeting, mpi, result.mpi);
    const auto before = counters_so_far(torii.context());
    time_pass(job, meeting, torii, result.torii);
    auto counted = counters_so_far(torii.context());
    for (size_t i = 0; i < kCounters; ++i) counted[i] = job.sum(counted[i] - before[i]);
    result.torii.counters.push_back(counted);
    if (torii_first) time_pass(job, meeting, mpi, result.mpi);
  }
  result.calls = torii.calls();
  result.wrong = count_different(job, torii, mpi);
  return result;
}

double ratio(double mpi_us, double torii_us) { return torii_us > 0 ? mpi_us / torii_us : 0; }

void report(const VariedOptions& options, JsonLines& lines, int ranks, const SequenceSource& source,
            const SequenceResult& result) {
  const Passes &mpi = result.mpi, &torii = result.torii;
  std::printf("  %20s %6zu %10.3f %10.3f %7.2f %10.3f %10.3f %7.2f %7lld\n", source.name.c_str(), result.calls,
              mpi.first(), torii.first(), ratio(mpi.first(), torii.first()), mpi.later(), torii.later(),
              ratio(mpi.later(), torii.later()), static_cast<long long>(result.wrong));
  std::fflush(stdout);
  if (!lines.wanted()) return;
  nlohmann::ordered_json json;
  json["sequence"] = source.name;
  json["mpi"] = Mpi::version();
  json["setting"] = options.setting;
  json["ranks"] = ranks;
  json["calls"] = result.calls;
  json["fresh"] = source.is_fresh;
  json["mpi_first_us"] = mpi.first();
  json["torii_first_us"] = torii.first();
  json["ratio_first"] = ratio(mpi.first(), torii.first());
  json["mpi_us"] = mpi.later();
  json["torii_us"] = torii.later();
  json["ratio"] = ratio(mpi.later(), torii.later());
  json["mpi_passes_us"] = mpi.us;
  json["torii_passes_us"] = torii.us;
  json["mpi_faults"] = mpi.faults;
  json["torii_faults"] = torii.faults;
  for (size_t i = 0; i < kCounters; ++i) {
    std::vector<int64_t> of_passes;
    for (const auto& counted : torii.counters) of_passes.push_back(counted[i]);
    json[std::string("torii_") + kCounterNames[i]] = of_passes;
  }
  json["wrong"] = result.wrong;
  json["seed"] = options.seed;
  json["command"] = options.command;
  lines.add(std::move(json));
}

std::vector<SequenceSource> sources_of(const VariedOptions& options, int ranks) {
  std::vector<SequenceSource> own = own_sequences(ranks, options.seed, options.calls), sources;
  for (const std::string& name : options.names) {
    const auto at = std::find_if(own.begin(), own.end(), [&](const SequenceSource& one) { return one.name == name; });
    sources.push_back(*at);
  }
  for (const std::string& file : options.files) sources.push_back(recorded_sequence(file, ranks));
  return sources;
}

int compare(const VariedOptions& options, const Mpi& mpi) {
  const Job job("", Mpi::exchange, mpi.rank(), mpi.ranks());
  Meeting meeting(job);
  if (!meeting.shared()) throw Failure(kNotPossible, "no page that all ranks map: the barrier would be torii's own");
  JsonLines lines(job.rank() == 0 ? options.json : "", Output::Mode::append);
  if (job.rank() == 0) {
    std::printf(
        "# %s, setting '%s', %d ranks, us of a call: in the first pass, and the median of the later half of %d\n",
        Mpi::version().c_str(), options.setting.c_str(), job.ranks(), options.passes);
    std::printf("# %20s %6s %10s %10s %7s %10s %10s %7s %7s\n", "sequence", "calls", "MPI first", "torii", "ratio",
                "MPI later", "torii", "ratio", "#wrong");
    std::fflush(stdout);
  }
  int64_t wrong = 0;
  bool torii_begins = options.seed % 2 == 0;
  for (SequenceSource& source : sources_of(options, job.ranks())) {
    const SequenceResult result = measure(job, meeting, source, options, torii_begins);
    torii_begins = !torii_begins;
    wrong += result.wrong;
    if (job.rank() == 0) report(options, lines, job.ranks(), source, result);
  }
  return wrong == 0 ? kOk : kWrongData;
}

/// Returns false for --help and --version, which rank 0 has printed.
bool parse(int argc, char** argv, bool speaks, VariedOptions& options) {
  std::string known, wanted, recorded;
  for (const SequenceSource& source : own_sequences(2, 0, 1)) known += (known.empty() ? "" : ",") + source.name;
  wanted = known;
  const CommandLine app("Times sequences of calls that change, by MPI and by torii in turn, pass by pass.");
  app.add_option("--sequences", wanted, "a list of " + known + "; none: -").show_default();
  app.add_option("--recorded", recorded, "a list of files of perf/merge_calls");
  app.add_option("--passes", options.passes, "passes of each sequence").range(1, 10000).show_default();
  app.add_option("--calls", options.calls, "calls of a sequence whose lengths are drawn")
      .range(1, 100000)
      .show_default();
  app.add_option("--seed", options.seed, "what calls are drawn from").show_default();
  app.add_option("--json", options.json, "append one JSON object per line to this file");
  app.add_option("--setting", options.setting, "what to call MPI's setting in the JSON");
  app.add_option("--command", options.command, "the command line to note in the JSON");
  const char* example = "mpirun.openmpi -n 2 varied_perf.openmpi --sequences broadcast-roots,allreduce";
  const std::string version = torii_version() + (", " + Mpi::version());
  if (!parse_command_line(app, argc, argv, example, version, speaks)) return false;
  const std::vector<std::string> names = split_list(known);
  if (wanted != "-") options.names = split_list(wanted);
  for (const std::string& word : options.names) {
    if (std::find(names.begin(), names.end(), word) != names.end()) continue;
    throw Failure(kBadCommandLine, "--sequences '" + word + "' is unknown: use " + known);
  }
  if (!recorded.empty()) options.files = split_list(recorded);
  return true;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  using namespace torii::perf;
  const Mpi mpi(argc, argv);
  try {
    VariedOptions options;
    if (!parse(argc, argv, mpi.rank() == 0, options)) return kOk;
    return compare(options, mpi);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", mpi.rank(), error.what());
    Mpi::abort(exit_code_of(error));
  }
}
