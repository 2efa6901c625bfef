// SPDX-License-Identifier: Apache-2.0
// slot_copy_perf: what an allreduce between two ranks of one machine can be held beside. Times two pinned threads that
// move a vector each way through slots, or fold mapped vectors, in alternating blocks, and checks the results. Not
// installed: it uses the library's kernels.
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perf/common/failure.hpp"
#include "perf/common/host.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "perf/kernels/slot_copy.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

struct BoundOptions {
  SizeRange sizes{"8K", "32M"};
  size_t slot_bytes = size_t{32} << 10, non_temporal_bytes = std::numeric_limits<size_t>::max();
  int slots = 8, rounds = 9;
  double block_ms = 5;
  std::vector<Move> moves;
  std::string json;
  std::array<int, 2> cpus{};
};

const char* name(Move move) { return move == Move::slots ? "slots" : "mapped"; }

/// The first two CPUs that this process may use.
std::array<int, 2> two_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  }
  if (cpus.size() < 2) throw Failure(kNotPossible, "two sides need two CPUs; this process may use one");
  return {cpus[0], cpus[1]};
}

bool parse(int argc, char** argv, BoundOptions& options) {
  std::string slot = "32K", non_temporal, moves = "slots,mapped";
  const CommandLine app(
      "Times a vector each way between two pinned threads: copied through slots, or folded from mapped memory.");
  options.sizes.add_flags(app);
  app.add_option("--move", moves, "slots, mapped or both").show_default();
  app.add_option("--slot", slot, "bytes of a slot, and of a piece folded at once; a multiple of 64").show_default();
  app.add_option("--slots", options.slots, "slots in each direction").range(1, 1024).show_default();
  app.add_option("--non-temporal", non_temporal,
                 "store into the other side's memory past the caches from this size on (default: never)");
  app.add_option("--rounds", options.rounds, "blocks of each move").range(1, 1000).show_default();
  app.add_option("--block-ms", options.block_ms, "time of a block").range(0.01, 1e4).show_default();
  app.add_option("--json", options.json, "write one JSON object per line to this file, - for stdout");
  if (!parse_command_line(app, argc, argv, "slot_copy_perf -b 8K -e 32M --slot 32K --slots 8")) return false;
  options.sizes.read();
  options.slot_bytes = parse_size("--slot", slot);
  if (!non_temporal.empty()) options.non_temporal_bytes = parse_size("--non-temporal", non_temporal);
  if (options.sizes.begin_bytes() % 8 != 0) {
    throw Failure(kBadCommandLine, "-b " + options.sizes.begin_text() + " must be a multiple of 8");
  }
  if (options.slot_bytes % 64 != 0 || options.slot_bytes > size_t{1} << 30) {
    throw Failure(kBadCommandLine, "--slot " + slot + " must be a multiple of 64 of at most 1G");
  }
  if (moves != "mapped") options.moves.push_back(Move::slots);
  if (moves != "slots") options.moves.push_back(Move::mapped);
  if (moves != "slots" && moves != "mapped" && moves != "slots,mapped") {
    throw Failure(kBadCommandLine, "--move '" + moves + "' is unknown: use slots, mapped or slots,mapped");
  }
  if (4 * options.sizes.end_bytes() > available_memory_bytes()) {
    throw Failure(kNotPossible,
                  fmt::format("-e {} needs {} MiB; this machine has {} MiB available", options.sizes.end_text(),
                              options.sizes.end_bytes() >> 18, available_memory_bytes() >> 20));
  }
  options.cpus = two_cpus();
  return true;
}

int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Both sides' stamps of the calls of one block.
using Stamps = std::array<std::vector<std::array<int64_t, 2>>, 2>;

float operand(int side, int call, size_t i) {
  return static_cast<float>((i * 7 + static_cast<size_t>(call % 2) * 3 + static_cast<size_t>(side)) % 1024);
}

/// One size: threads that make blocks of calls until the rounds are over.
class Measurement {
 public:
  Measurement(const BoundOptions& options, size_t bytes)
      : options_(options),
        exchange_({bytes, options.slot_bytes, options.slots, bytes >= options.non_temporal_bytes}),
        count_(bytes / sizeof(float)),
        blocks_ns_(options.moves.size()) {}

  /// Wrong elements.
  size_t run() {
    std::thread second([this] { run_side(1); });
    run_side(0);
    second.join();
    return wrong_[0] + wrong_[1];
  }
  const std::vector<std::vector<double>>& blocks_ns(size_t move) const { return blocks_ns_[move]; }

 private:
  void run_side(int number);
  void run_block(Side& side, int number, Move move, int calls);
  size_t count_wrong(int number, Move move, int call);
  std::vector<double> durations() const;

  const BoundOptions& options_;
  Exchange exchange_;
  size_t count_;
  std::vector<std::vector<std::vector<double>>> blocks_ns_;
  Stamps stamps_;
  std::array<size_t, 2> wrong_{};
  std::vector<int> calls_;
};

std::vector<double> Measurement::durations() const {
  std::vector<double> list;
  for (size_t call = 0; call < stamps_[0].size(); ++call) {
    const auto &a = stamps_[0][call], &b = stamps_[1][call];
    list.push_back(static_cast<double>(std::max(a[1], b[1]) - std::max(a[0], b[0])));
  }
  return list;
}

/// Before each call a side writes its input anew, so that it is in its own cache and nowhere else.
void Measurement::run_block(Side& side, int number, Move move, int calls) {
  stamps_[number].clear();
  for (int call = 0; call < calls; ++call) {
    for (size_t i = 0; i < count_; ++i) exchange_.input(number)[i] = operand(number, call, i);
    side.meet();
    const int64_t start_ns = clock_ns();
    side.run(move);
    stamps_[number].push_back({start_ns, clock_ns()});
  }
  side.meet();
}

size_t Measurement::count_wrong(int number, Move move, int call) {
  size_t wrong = 0;
  for (size_t i = 0; i < count_; ++i) {
    const float other = operand(1 - number, call, i);
    const float expected = move == Move::slots ? other : other + operand(number, call, i);
    if (exchange_.result(number)[i] != expected) ++wrong;
  }
  return wrong;
}

void Measurement::run_side(int number) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(options_.cpus[number], &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
  Side side(exchange_, number);
  // Side 0 keeps the figures; the meetings around its work make it visible to the other.
  for (int round = -1; round < options_.rounds; ++round) {
    for (size_t m = 0; m < options_.moves.size(); ++m) {
      const Move move = options_.moves[m];
      const int calls = round < 0 ? 3 : calls_[m];
      std::fill_n(exchange_.result(number), count_, -1.0f);
      side.meet();
      run_block(side, number, move, calls);
      wrong_[number] += count_wrong(number, move, calls - 1);
      side.meet();
      if (number != 0) continue;
      std::vector<double> list = durations();
      if (round < 0) {
        calls_.push_back(std::clamp(static_cast<int>(options_.block_ms * 1e6 / std::max(median(list), 1.0)), 1, 1000));
      } else {
        blocks_ns_[m].push_back(std::move(list));
      }
    }
    side.meet();
  }
}

/// The fastest block is the bound on a machine that does other things too.
double least_us(const std::vector<std::vector<double>>& blocks_ns) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& block : blocks_ns) least = std::min(least, median(block));
  return least / 1e3;
}

struct BoundRow {
  Move move;
  size_t bytes, wrong;
  Statistics time;
  double least_us;
};

void print(const BoundOptions& options, JsonLines& lines, const BoundRow& row) {
  const double gbps = static_cast<double>(row.bytes) / std::max(row.least_us, 1e-3) / 1e3;
  fmt::print(lines.table(), "  {:>10} {:>7} {:>12.3f} {:>10.3f} {:>12.3f} {:>10.3f} {:>7}\n", row.bytes, name(row.move),
             row.time.median_us, row.time.mad_us, row.least_us, gbps, row.wrong);
  std::fflush(lines.table());
  if (!lines.wanted()) return;
  nlohmann::ordered_json json;
  json["move"] = name(row.move);
  json["bytes"] = row.bytes;
  json["slot_bytes"] = options.slot_bytes;
  json["slots"] = options.slots;
  json["non_temporal"] = row.bytes >= options.non_temporal_bytes;
  json["time_us_median"] = row.time.median_us;
  json["time_us_mad"] = row.time.mad_us;
  json["time_us_least"] = row.least_us;
  json["GBps"] = gbps;
  json["wrong"] = row.wrong;
  lines.add(std::move(json));
}

int measure(const BoundOptions& options) {
  JsonLines lines(options.json, Output::Mode::replace);
  std::FILE* table = lines.table();
  fmt::print(table, "# torii {} commit {}, {}, CPUs {} and {}, {} slots of {}\n", torii_version(), commit(), host(),
             options.cpus[0], options.cpus[1], options.slots, bytes_text(options.slot_bytes));
  fmt::print(table, "# {:>10} {:>7} {:>12} {:>10} {:>12} {:>10} {:>7}\n", "size(B)", "move", "time(us)", "mad(us)",
             "least(us)", "GB/s", "#wrong");
  size_t wrong_in_all = 0;
  for (const size_t bytes : options.sizes.sizes()) {
    Measurement measurement(options, bytes);
    const size_t wrong = measurement.run();
    wrong_in_all += wrong;
    for (size_t m = 0; m < options.moves.size(); ++m) {
      const auto& blocks_ns = measurement.blocks_ns(m);
      print(options, lines, {options.moves[m], bytes, wrong, summarise(blocks_ns), least_us(blocks_ns)});
    }
  }
  return wrong_in_all == 0 ? kOk : kWrongData;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  using namespace torii::perf;
  return run_program(argv, [&] {
    BoundOptions options;
    if (!parse(argc, argv, options)) return static_cast<int>(kOk);
    return measure(options);
  });
}
