// SPDX-License-Identifier: Apache-2.0
// Times and checks allreduces of many short vectors: one call after the other, all started and then waited for, in a
// group, and one call of the sum of lengths. See coalesced_perf --help.
#include <torii/torii.h>

#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perf/common/buffers.hpp"
#include "perf/common/failure.hpp"
#include "perf/common/job.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/meeting.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"

namespace torii::perf {
namespace {

struct CoalescedOptions {
  SizeRange sizes{"1K", "1K"};
  int tensors = 100;
  int ranks = 0;
  int iterations = 0;
  int warm_up = 5;
  Memory memory = Memory::malloced;
  std::string json, settings;
};

/// The vectors of a rank, one behind the other, summed in place. Their values are small integers, so any order of sums
/// gives the same.
class Tensors {
 public:
  Tensors(const Job& job, Memory memory, int tensors, size_t bytes)
      : team_(job.team()),
        rank_(job.rank()),
        ranks_(job.ranks()),
        count_(tensors),
        length_(bytes / sizeof(float)),
        memory_(job, memory, static_cast<size_t>(tensors) * bytes) {}

  torii_team* team() const { return team_; }
  int count() const { return count_; }
  size_t length() const { return length_; }
  float* tensor(int number) const {
    return reinterpret_cast<float*>(memory_.data()) + static_cast<size_t>(number) * length_;
  }
  void refresh(int i) {
    for (size_t at = 0; at < static_cast<size_t>(count_) * length_; ++at) tensor(0)[at] = value(at, i, rank_);
  }
  int64_t count_wrong(int i) const {
    int64_t wrong = 0;
    for (size_t at = 0; at < static_cast<size_t>(count_) * length_; ++at) {
      float sum = 0;
      for (int rank = 0; rank < ranks_; ++rank) sum += value(at, i, rank);
      wrong += tensor(0)[at] != sum ? 1 : 0;
    }
    return wrong;
  }

 private:
  static float value(size_t at, int i, int rank) {
    return static_cast<float>((at + static_cast<size_t>(i)) % 251) + static_cast<float>(rank);
  }

  torii_team* team_;
  int rank_, ranks_, count_;
  size_t length_;
  Vector memory_;
};

enum class Form { separate, started, group, one };
constexpr std::array kForms = {Form::separate, Form::started, Form::group, Form::one};
const char* name(Form form) {
  constexpr std::array kNames = {"separate", "started", "group", "one"};
  return kNames.at(static_cast<size_t>(form));
}

/// A way to sum all of them.
class FormSubject final : public Subject {
 public:
  FormSubject(Tensors& tensors, Form form) : tensors_(tensors), form_(form) {}
  void prepare(int i) override { tensors_.refresh(last_ = i); }
  int last() const { return last_; }
  torii_status call() override {
    switch (form_) {
      case Form::separate:
        return make_all();
      case Form::started:
        return start_all();
      case Form::group: {
        const torii_status begun = torii_group_begin(tensors_.team());
        const torii_status joined = begun == TORII_OK ? make_all() : begun;
        const torii_status ended = torii_group_end(tensors_.team());
        return joined != TORII_OK ? joined : ended;
      }
      case Form::one:
        break;
    }
    return torii_allreduce(tensors_.team(), tensors_.tensor(0), tensors_.tensor(0),
                           static_cast<size_t>(tensors_.count()) * tensors_.length(), TORII_F32, TORII_SUM);
  }

 private:
  torii_status make_all() {
    torii_status status = TORII_OK;
    for (int i = 0; i < tensors_.count() && status == TORII_OK; ++i) {
      float* const data = tensors_.tensor(i);
      status = torii_allreduce(tensors_.team(), data, data, tensors_.length(), TORII_F32, TORII_SUM);
    }
    return status;
  }
  torii_status start_all() {
    requests_.assign(static_cast<size_t>(tensors_.count()), nullptr);
    torii_call call = make_call(TORII_ALLREDUCE, nullptr, nullptr, tensors_.length(), TORII_F32);
    for (int i = 0; i < tensors_.count(); ++i) {
      call.input = call.result = tensors_.tensor(i);
      const torii_status status = torii_start(tensors_.team(), &call, &requests_[static_cast<size_t>(i)]);
      if (status != TORII_OK) return status;
    }
    return torii_wait_all(requests_.data(), tensors_.count());
  }

  Tensors& tensors_;
  Form form_;
  int last_ = 0;
  std::vector<torii_request*> requests_;
};

/// One length: all forms in turn, block by block, so that a machine that changes its speed changes it for all.
int64_t measure(const CoalescedOptions& options, const Job& job, Meeting& meeting, size_t bytes, JsonLines& lines) {
  Tensors tensors(job, options.memory, options.tensors, bytes);
  std::vector<std::unique_ptr<FormSubject>> subjects;
  std::array<int, kForms.size()> calls{};
  std::array<std::vector<std::vector<double>>, kForms.size()> blocks;
  int64_t wrong = 0;
  for (size_t form = 0; form < kForms.size(); ++form) {
    subjects.push_back(std::make_unique<FormSubject>(tensors, kForms[form]));
    const int fitting = warm_up(job, meeting, Timing::isolated, options.warm_up, kBlockNs, *subjects[form]);
    calls[form] = options.iterations > 0 ? options.iterations : fitting;
    wrong += job.sum(tensors.count_wrong(subjects[form]->last()));
  }
  for (int block = 0; block < kBlocks; ++block) {
    for (size_t form = 0; form < kForms.size(); ++form) {
      FormSubject& subject = *subjects[form];
      blocks[form].push_back(run_block(job, meeting, Timing::isolated, calls[form], subject).durations_ns);
      wrong += job.sum(tensors.count_wrong(subject.last()));
    }
  }
  if (job.rank() != 0) return wrong;
  for (size_t form = 0; form < kForms.size(); ++form) {
    const Statistics time = summarise(blocks[form]);
    std::fprintf(lines.table(), "%10zu %8d %10s %12.2f %10.2f %12.2f %8lld\n", bytes, options.tensors,
                 name(kForms[form]), time.median_us, time.mad_us, time.p99_us, static_cast<long long>(wrong));
    lines.add({{"collective", "coalesced"},
               {"form", name(kForms[form])},
               {"ranks", job.ranks()},
               {"tensors", options.tensors},
               {"bytes", bytes},
               {"memory", name(options.memory)},
               {"iterations", time.calls},
               {"time_us_median", time.median_us},
               {"time_us_mad", time.mad_us},
               {"time_us_p99", time.p99_us},
               {"time_us_max", time.max_us},
               {"wrong", wrong}});
  }
  std::fflush(lines.table());
  return wrong;
}

int run_rank(const CoalescedOptions& options) {
  const Job job(options.settings);
  Meeting meeting(job);
  JsonLines lines(job.rank() == 0 ? options.json : "", Output::Mode::append);
  if (job.rank() == 0) {
    std::fprintf(lines.table(), "# allreduce of f32, %d ranks, %s memory, times in us of all tensors together\n",
                 job.ranks(), name(options.memory));
    std::fprintf(lines.table(), "%10s %8s %10s %12s %10s %12s %8s\n", "size(B)", "tensors", "form", "median", "mad",
                 "p99", "wrong");
  }
  int64_t wrong = 0;
  for (const size_t bytes : options.sizes.sizes()) {
    wrong += measure(options, job, meeting, bytes / sizeof(float) * sizeof(float), lines);
  }
  if (job.rank() == 0) {
    std::fprintf(lines.table(), "# data: %s\n", wrong == 0 ? "OK" : ("WRONG, " + std::to_string(wrong)).c_str());
  }
  return wrong == 0 ? kOk : kWrongData;
}

bool parse(int argc, char** argv, CoalescedOptions& options) {
  std::string memory = "malloc";
  std::vector<std::string> settings;
  const CommandLine app(
      "Times allreduces of many short vectors: separate calls, started calls, a group, and one call.");
  options.sizes.add_flags(app);
  app.add_option("--tensors", options.tensors, "so many vectors").range(1, 100000).show_default();
  app.add_option("--ranks", options.ranks, "start so many ranks here").range(1, 1024);
  app.add_option("-n,--iterations", options.iterations, "calls in each block; 0: as many as fit into 20 ms")
      .range(0, 1000000)
      .show_default();
  app.add_option("-w,--warm-up", options.warm_up, "calls before the timed ones").range(0, 1000000).show_default();
  app.add_option("--memory", memory, "malloc, allocated or adopted")
      .one_of({"malloc", "allocated", "adopted"})
      .show_default();
  app.add_option("--set", settings, "a setting of the library, NAME=value; may be given several times");
  app.add_option("--json", options.json, "append one JSON object per line to this file; -: stdout");
  if (!parse_command_line(app, argc, argv, "coalesced_perf --ranks 4 -b 64 -e 64K -f 4 --tensors 100", speaks())) {
    return false;
  }
  options.sizes.read(size_t{1} << 30);
  if (options.sizes.begin_bytes() < sizeof(float)) {
    throw Failure(kBadCommandLine, "-b " + options.sizes.begin_text() + " is less than an element, 4 bytes");
  }
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
    CoalescedOptions options;
    if (!parse(argc, argv, options)) return static_cast<int>(kOk);
    start_asked_ranks(options.ranks, argc, argv);
    return run_rank(options);
  });
}
