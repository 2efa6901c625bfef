// SPDX-License-Identifier: Apache-2.0
// Times calls as programs make them: each call has another length, another root, and perhaps another collective than
// the call before. MPI and torii run such sequences in alternating blocks of one process. Started by mpirun; torii
// joins through MPI_Allgather.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
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

namespace torii::perf {
namespace {

/// What a kind of program calls.
struct Mix {
  const char* name;
  std::vector<torii_collective> collectives;
  size_t bytes_least, bytes_most;
};

const std::vector<Mix>& all_mixes() {
  static const std::vector<torii_collective> all = {TORII_ALLREDUCE,  TORII_BROADCAST,      TORII_REDUCE,
                                                    TORII_ALL_GATHER, TORII_REDUCE_SCATTER, TORII_ALLTOALL,
                                                    TORII_BARRIER};
  static const std::vector<Mix> mixes = {
      {"panels", {TORII_BROADCAST, TORII_REDUCE}, 8, 8 << 10},  // a factorisation of a matrix
      {"sums", {TORII_ALLREDUCE}, 8, 64 << 10},                 // a solver
      {"all-short", all, 8, 64 << 10},
      {"all-long", all, 64 << 10, 4 << 20},
  };
  return mixes;
}

struct SequenceOptions {
  std::vector<Mix> mixes;
  std::string json, setting, command;
  int calls = 200;
  size_t seed = 1;
  double block_ms = 20;
};

/// The calls of one way on vectors of its own. The numbers are small integers, so that every order of sums is exact.
class Sequence : public Subject {
 public:
  Sequence(const Job& job, const Mix& mix, const SequenceOptions& options)
      : job_(job), mix_(mix), random_(options.seed), calls_(static_cast<size_t>(options.calls)) {
    const size_t elements = mix.bytes_most / sizeof(float) + static_cast<size_t>(job.ranks());
    for (size_t i = 0; i < elements; ++i) input_.push_back(static_cast<float>((i * 7 + job.rank()) % 61));
    result_.resize(elements);
    prepare(0);
  }

  /// Draws the next calls, the same on all ranks. The argument is not used: no two sequences are equal, so that a call
  /// seldom has the length and the root of an earlier one.
  void prepare(int /*i*/) override {
    for (torii_call& call : calls_) draw(call);
  }
  torii_status call() override {
    for (const torii_call& call : calls_) {
      const torii_status status = make(call);
      if (status != TORII_OK) return status;
    }
    return TORII_OK;
  }
  // MPI moves what a rank still owes to others only within calls of MPI.
  void settle() override { Mpi::barrier(); }

  /// Makes call number i on a result that is the same on all ways before.
  void make_one(size_t i) {
    for (size_t at = 0; at < result_.size(); ++at) result_[at] = static_cast<float>((at + job_.rank()) % 53);
    check(make(calls_[i]), "the checked call failed");
    settle();
  }
  size_t calls() const { return calls_.size(); }
  const std::vector<float>& result() const { return result_; }
  bool has_result(size_t i) const { return calls_[i].collective != TORII_REDUCE || calls_[i].root == job_.rank(); }

 private:
  virtual torii_status make(const torii_call& call) = 0;

  void draw(torii_call& call) {
    call = {};
    call.size = sizeof(call);
    call.collective = mix_.collectives[random_() % mix_.collectives.size()];
    // Each power of two is as likely as another one.
    const double share = static_cast<double>(random_()) / std::mt19937::max();
    const double least = std::log2(mix_.bytes_least), most = std::log2(mix_.bytes_most);
    const auto bytes = static_cast<size_t>(std::exp2(least + share * (most - least)));
    const size_t parts = has_blocks(call.collective) ? static_cast<size_t>(job_.ranks()) : 1;
    const auto root = static_cast<int>(random_() % static_cast<unsigned>(job_.ranks()));
    call.count = call.collective == TORII_BARRIER ? 0 : std::max<size_t>(1, bytes / sizeof(float) / parts);
    call.type = TORII_F32;
    call.op = TORII_SUM;
    call.root = has_root(call.collective) ? root : 0;
    call.input = call.collective == TORII_BROADCAST || call.count == 0 ? nullptr : input_.data();
    call.result = call.count == 0 ? nullptr : result_.data();
    if (call.collective == TORII_REDUCE && call.root != job_.rank()) call.result = nullptr;
  }

  const Job& job_;
  const Mix& mix_;
  std::mt19937 random_;
  std::vector<torii_call> calls_;
  std::vector<float> input_, result_;
};

class ToriiSequence final : public Sequence {
 public:
  ToriiSequence(const Job& job, const Mix& mix, const SequenceOptions& options)
      : Sequence(job, mix, options), team_(job.team()) {}

 private:
  torii_status make(const torii_call& call) override { return torii_run(team_, &call); }
  torii_team* team_;
};
class MpiSequence final : public Sequence {
 public:
  using Sequence::Sequence;

 private:
  torii_status make(const torii_call& call) override { return Mpi::run(call); }
};

/// Elements, over all ranks, in which the first sequence gives other results on one way than on the other.
int64_t count_different(const Job& job, Sequence& one, Sequence& other) {
  int64_t different = 0;
  for (size_t i = 0; i < one.calls(); ++i) {
    one.make_one(i);
    other.make_one(i);
    if (!one.has_result(i)) continue;
    for (size_t at = 0; at < one.result().size(); ++at) different += one.result()[at] != other.result()[at] ? 1 : 0;
  }
  return job.sum(different);
}

struct MixResult {
  Statistics mpi, torii;  ///< of whole sequences
  int64_t wrong = 0;
};

MixResult measure(const Job& job, Meeting& meeting, const Mix& mix, const SequenceOptions& options) {
  MixResult result;
  MpiSequence mpi(job, mix, options);
  ToriiSequence torii(job, mix, options);
  result.wrong = count_different(job, mpi, torii);
  constexpr int kWarmUp = 3;
  const std::array<Sequence*, 2> ways = {&mpi, &torii};
  std::array<int, 2> repeats{};
  for (size_t w = 0; w < ways.size(); ++w) {
    repeats[w] = warm_up(job, meeting, Timing::isolated, kWarmUp, options.block_ms * 1e6, *ways[w]);
  }
  std::array<std::vector<std::vector<double>>, 2> blocks;
  for (size_t b = 0; b < kBlocks; ++b) {
    for (size_t i = 0; i < ways.size(); ++i) {
      const size_t w = (b + i) % ways.size();
      blocks[w].push_back(run_block(job, meeting, Timing::isolated, repeats[w], *ways[w]).durations_ns);
    }
  }
  result.mpi = summarise(blocks[0]);
  result.torii = summarise(blocks[1]);
  return result;
}

void put_times(nlohmann::ordered_json& json, const std::string& prefix, const Statistics& time, int calls) {
  json[prefix + "_us"] = time.median_us / calls;
  json[prefix + "_us_mad"] = time.mad_us / calls;
  json[prefix + "_us_p99"] = time.p99_us / calls;
  json[prefix + "_sequences"] = time.calls;
}

void report(const SequenceOptions& options, JsonLines& lines, int ranks, const Mix& mix, const MixResult& result) {
  const double ratio = result.torii.median_us > 0 ? result.mpi.median_us / result.torii.median_us : 0;
  std::printf("  %12s %8zu %8zu %12.3f %12.3f %8.2f %7lld\n", mix.name, mix.bytes_least, mix.bytes_most,
              result.mpi.median_us / options.calls, result.torii.median_us / options.calls, ratio,
              static_cast<long long>(result.wrong));
  std::fflush(stdout);
  if (!lines.wanted()) return;
  nlohmann::ordered_json json;
  json["mix"] = mix.name;
  json["mpi"] = Mpi::version();
  json["setting"] = options.setting;
  json["ranks"] = ranks;
  json["bytes_least"] = mix.bytes_least;
  json["bytes_most"] = mix.bytes_most;
  json["calls"] = options.calls;
  put_times(json, "mpi", result.mpi, options.calls);
  put_times(json, "torii", result.torii, options.calls);
  json["ratio"] = ratio;
  json["wrong"] = result.wrong;
  json["command"] = options.command;
  lines.add(std::move(json));
}

int compare(const SequenceOptions& options, const Mpi& mpi) {
  const Job job("", Mpi::exchange, mpi.rank(), mpi.ranks());
  Meeting meeting(job);
  if (!meeting.shared()) throw Failure(kNotPossible, "no page that all ranks map: the barrier would be torii's own");
  JsonLines lines(job.rank() == 0 ? options.json : "", Output::Mode::append);
  if (job.rank() == 0) {
    std::printf("# %s, setting '%s', %d ranks, sequences of %d calls, us of a call\n# %12s %8s %8s %12s %12s %8s %7s\n",
                Mpi::version().c_str(), options.setting.c_str(), job.ranks(), options.calls, "mix", "from(B)", "to(B)",
                "MPI(us)", "torii(us)", "ratio", "#wrong");
    std::fflush(stdout);
  }
  int64_t wrong = 0;
  for (const Mix& mix : options.mixes) {
    const MixResult result = measure(job, meeting, mix, options);
    wrong += result.wrong;
    if (job.rank() == 0) report(options, lines, job.ranks(), mix, result);
  }
  return wrong == 0 ? kOk : kWrongData;
}

/// Returns false for --help and --version, which rank 0 has printed.
bool parse(int argc, char** argv, bool speaks, SequenceOptions& options) {
  std::string names;
  for (const Mix& mix : all_mixes()) names += (names.empty() ? "" : ",") + std::string(mix.name);
  std::string wanted = names;
  const tools::CommandLine app(
      "Times sequences of collectives that change from call to call, by MPI and by torii by turns.");
  app.add_option("--mixes", wanted, "a list of " + names).show_default();
  app.add_option("--calls", options.calls, "calls of a sequence").range(1, 100000).show_default();
  app.add_option("--seed", options.seed, "what lengths and roots are drawn from").show_default();
  app.add_option("--block-ms", options.block_ms, "time of one of the 5 blocks of each way")
      .range(0.1, 1e4)
      .show_default();
  app.add_option("--json", options.json, "append one JSON object per line to this file");
  app.add_option("--setting", options.setting, "what to call MPI's setting in the JSON");
  app.add_option("--command", options.command, "the command line to note in the JSON");
  const char* example = "mpirun.openmpi -n 2 sequence_perf.openmpi --mixes panels,sums";
  const std::string version = torii_version() + (", " + Mpi::version());
  if (!parse_command_line(app, argc, argv, example, version, speaks)) return false;
  for (const std::string& word : split_list(wanted)) {
    const auto at =
        std::find_if(all_mixes().begin(), all_mixes().end(), [&](const Mix& mix) { return mix.name == word; });
    if (at == all_mixes().end()) throw Failure(kBadCommandLine, "--mixes '" + word + "' is unknown: use " + names);
    options.mixes.push_back(*at);
  }
  return true;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  using namespace torii::perf;
  const Mpi mpi(argc, argv);
  try {
    SequenceOptions options;
    if (!parse(argc, argv, mpi.rank() == 0, options)) return kOk;
    return compare(options, mpi);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", mpi.rank(), error.what());
    Mpi::abort(exit_code_of(error));
  }
}
