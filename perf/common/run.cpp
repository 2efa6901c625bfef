// SPDX-License-Identifier: Apache-2.0
// The main loop of the perf binaries.
#include "perf/common/run.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "perf/common/buffers.hpp"
#include "perf/common/failure.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "perf/common/report.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

constexpr int kEnginesMax = 16;
constexpr int64_t kSilentNs = 5'000'000'000;

class ToriiSubject : public Subject {
 public:
  ToriiSubject(torii_team* team, CallData& data) : team_(team), data_(data) {}
  void prepare(int i) override {
    last_ = i;
    data_.refresh(i);
  }
  torii_status call() override { return torii_run(team_, &data_.call()); }
  int last() const { return last_; }  ///< the number of the last pattern that went in

 private:
  torii_team* team_;
  CallData& data_;
  int last_ = 0;
};

struct Cell {
  size_t bytes;
  torii_type type;
  torii_op op;
};

/// One run of the program on one rank.
class Bench {
 public:
  Bench(const Options& options, Job& job, Meeting& meeting, Report* report)
      : options_(options), job_(job), meeting_(meeting), report_(report) {
    if (options.leaves != 0) leaves_.emplace(job, options.leaves);
  }
  /// Returns the number of wrong elements, equal on all ranks.
  int64_t run_all();

 private:
  int64_t run_cell(const Cell& cell);
  /// The call on pattern i into a spoilt result; returns the wrong elements of all ranks.
  int64_t run_checked(CallData& data, int i);
  /// The common hash of the results; 0 wrong ranks if they agree.
  uint64_t common_hash(const CallData& data, int64_t& differing);
  void time_cell(CallData& data, Row& row);
  std::vector<int64_t> engine_bytes() const;
  void say_progress(const Row& row, int block, int64_t start_ns);

  const Options& options_;
  Job& job_;
  Meeting& meeting_;
  Report* report_;  ///< nullptr on every rank but 0
  std::optional<Leaves> leaves_;
};

std::vector<int64_t> Bench::engine_bytes() const {
  std::array<uint64_t, kEnginesMax> bytes{};
  const int engines = torii_engine_bytes(job_.context(), bytes.data(), kEnginesMax);
  return {bytes.begin(), bytes.begin() + std::min(engines, kEnginesMax)};
}

int64_t Bench::run_checked(CallData& data, int i) {
  data.refresh(i);
  data.spoil_result();
  job_.barrier();
  check(torii_run(job_.team(), &data.call()), std::string("the checked ") + name(options_.collective) + " failed");
  return job_.sum(static_cast<int64_t>(data.count_wrong(job_.team(), i)));
}

uint64_t Bench::common_hash(const CallData& data, int64_t& differing) {
  const std::vector<int64_t> all = job_.gather(std::array{static_cast<int64_t>(data.hash_result())});
  const bool at_root_only = options_.collective == TORII_REDUCE || options_.collective == TORII_GATHER;
  if (at_root_only) return static_cast<uint64_t>(all[options_.root]);
  differing += static_cast<int64_t>(std::count_if(all.begin(), all.end(), [&](int64_t h) { return h != all[0]; }));
  return static_cast<uint64_t>(all[0]);
}

void Bench::say_progress(const Row& row, int block, int64_t start_ns) {
  if (report_ == nullptr || now_ns() - start_ns < kSilentNs) return;
  report_->progress(bytes_text(row.bytes) + " " + info(row.type).name + ": block " + std::to_string(block + 1) +
                    " of " + std::to_string(kBlocks) + ", " + std::to_string(row.time.calls) + " calls each");
}

void Bench::time_cell(CallData& data, Row& row) {
  ToriiSubject subject(job_.team(), data);
  const int64_t start_ns = now_ns();
  const int fitting = warm_up(job_, meeting_, options_.timing, options_.warm_up, kBlockNs, subject);
  const int calls = options_.iterations > 0 ? options_.iterations : fitting;
  row.time.calls = calls;
  std::vector<std::vector<double>> blocks;
  std::vector<int64_t> put;
  int64_t early_ends = 0;
  for (int b = 0; b < kBlocks; ++b) {
    say_progress(row, b, start_ns);
    const std::vector<int64_t> before = engine_bytes();
    Block block = run_block(job_, meeting_, options_.timing, calls, subject);
    const std::vector<int64_t> after = engine_bytes();
    put.resize(after.size());
    for (size_t e = 0; e < after.size(); ++e) put[e] += after[e] - before[e];
    early_ends += block.early_ends;
    blocks.push_back(std::move(block.durations_ns));
  }
  row.time = summarise(blocks);
  row.engine_bytes.assign(put.size(), 0);
  const std::vector<int64_t> all = job_.gather(put);
  for (size_t i = 0; i < all.size(); ++i) row.engine_bytes[i % put.size()] += all[i];
  if (!options_.check) return;
  if (options_.collective == TORII_BARRIER) *row.wrong += early_ends;
  // The last timed call is checked too. A loop in place has fed its results back, so nothing is known about them.
  if (options_.timing == Timing::isolated || !options_.in_place) {
    *row.wrong += job_.sum(static_cast<int64_t>(data.count_wrong(job_.team(), subject.last())));
  }
}

int64_t Bench::run_cell(const Cell& cell) {
  CallData data(job_, options_, options_.memory, cell.bytes, cell.type, cell.op, leaves_ ? &*leaves_ : nullptr);
  torii_choice choice{};
  choice.size = sizeof(choice);
  check(torii_choose(job_.team(), &data.call(), &choice), "torii does not run this");
  Row row;
  row.collective = options_.collective;
  row.algorithm = choice.algorithm;
  row.transport = choice.transport;
  row.isa = choice.isa;
  row.ranks = job_.ranks();
  row.engines = choice.engines;
  row.root = has_root(options_.collective) ? options_.root : -1;
  row.segment_bytes = choice.segment_bytes;
  row.bytes = data.bytes();
  row.elements = data.elements();
  row.type = cell.type;
  row.op = cell.op;
  if (options_.check) row.wrong = 0;
  if (options_.collective != TORII_BARRIER && (options_.check || options_.hash)) {
    // Pattern 1 first: the hash is that of pattern 0, which is the seed's own.
    for (const int pattern : {1, 0}) {
      const int64_t wrong = run_checked(data, pattern);
      if (options_.check) *row.wrong += wrong;
    }
    int64_t differing = 0;
    const uint64_t hash = common_hash(data, differing);
    if (differing == 0) row.hash = hash;
    if (options_.check && *row.wrong == 0) *row.wrong = differing;
  }
  time_cell(data, row);
  if (report_ != nullptr) report_->add(row);
  return row.wrong.value_or(0);
}

int64_t Bench::run_all() {
  int64_t wrong = 0;
  size_t last_bytes = 0;
  for (const torii_type type : options_.types) {
    for (const torii_op op : options_.ops) {
      if (combines(options_.collective) && !is_defined(options_.collective, op, type)) continue;
      last_bytes = 0;
      for (size_t bytes = options_.begin_bytes; bytes <= options_.end_bytes;
           bytes = options_.step_bytes > 0 ? bytes + options_.step_bytes : bytes * options_.factor) {
        // Sizes below one element per block are all rounded to the same one.
        const bool counts_all = has_blocks(options_.collective) && !options_.bytes_per_pair;
        const size_t parts = counts_all ? static_cast<size_t>(job_.ranks()) : 1;
        const size_t whole = parts * info(type).size_bytes;
        const size_t rounded = std::max(whole, bytes / whole * whole);
        if (rounded != last_bytes) wrong += run_cell({rounded, type, op});
        last_bytes = rounded;
        if (options_.collective == TORII_BARRIER) break;
      }
    }
  }
  return wrong;
}

int run_rank(const Options& options) {
  Job job(options.settings);
  if (options.root >= job.ranks()) {
    throw Failure(kBadCommandLine, "-r " + std::to_string(options.root) + " is not a rank: there are " +
                                       std::to_string(job.ranks()) + ", counted from 0");
  }
  Meeting meeting(job);
  std::optional<Report> report;
  if (job.rank() == 0) {
    report.emplace(options);
    report->header(job.ranks());
    if (!meeting.shared()) report->note("no shared page for the barrier between calls: torii's own barrier is used");
  }
  const int64_t wrong = Bench(options, job, meeting, report ? &*report : nullptr).run_all();
  if (report && options.check) report->note(wrong == 0 ? "data: OK" : "data: WRONG, " + std::to_string(wrong));
  return wrong == 0 ? kOk : kWrongData;
}

}  // namespace

int run(torii_collective collective, int argc, char** argv) noexcept {
  return run_program(argv, [&] {
    Options options;
    if (!parse_options(collective, argc, argv, options)) return static_cast<int>(kOk);
    if (options.ranks > 0 && options.root >= options.ranks) {
      throw Failure(kBadCommandLine, "-r " + std::to_string(options.root) + " is not a rank: --ranks is " +
                                         std::to_string(options.ranks) + " and ranks count from 0");
    }
    start_asked_ranks(options.ranks, argc, argv);
    return run_rank(options);
  });
}

}  // namespace torii::perf
