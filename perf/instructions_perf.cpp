// SPDX-License-Identifier: Apache-2.0
// Calls of two ranks that one thread drives, for callgrind to count: perf/instructions runs this program and says how
// many instructions a call takes on each rank. With one thread nothing depends on how fast the machine is just now.
// callgrind counts inside torii_perf_counted() and writes what it has counted after each torii_perf_cell_ends().
#include <torii/torii.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "perf/common/failure.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {

enum class Step { run, start, test };

/// A rank's part in one call.
struct Turn {
  torii_team* team;
  torii_call call;
  torii_request* request = nullptr;
  int done = 0;
};

}  // namespace torii::perf

// Names without C++ decoration, as the options of callgrind want them. The empty assembly keeps the call of the library
// inside the function: a jump at its end would leave it first.
extern "C" {
[[gnu::noinline]] torii_status torii_perf_uncounted(torii::perf::Step step, torii::perf::Turn* turn) {
  torii_status status = TORII_OK;
  switch (step) {
    case torii::perf::Step::run:
      status = torii_run(turn->team, &turn->call);
      break;
    case torii::perf::Step::start:
      status = torii_start(turn->team, &turn->call, &turn->request);
      break;
    case torii::perf::Step::test:
      status = torii_test(&turn->request, &turn->done);
      break;
  }
  asm volatile("" ::: "memory");
  return status;
}
[[gnu::noinline]] torii_status torii_perf_counted(torii::perf::Step step, torii::perf::Turn* turn) {
  const torii_status status = torii_perf_uncounted(step, turn);
  asm volatile("" ::: "memory");
  return status;
}
[[gnu::noinline]] void torii_perf_cell_ends() { asm volatile("" ::: "memory"); }

// The clock of this process, the library's included: a step at each look. The library tries two ways to store and times
// them, so with a real clock the counts of long vectors would be those of whichever was quicker today.
int clock_gettime(clockid_t /*clock*/, timespec* time) noexcept {
  constexpr int64_t kStepNs = 100, kSecondNs = 1'000'000'000;
  static std::atomic<int64_t> now_ns = kSecondNs;
  const int64_t now = now_ns.fetch_add(kStepNs, std::memory_order_relaxed);
  *time = {now / kSecondNs, now % kSecondNs};
  return 0;
}
}

namespace torii::perf {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kAlignBytes = 4096;
constexpr int kTestsMost = 100000;
constexpr int kFirstCalls = 10;
#if defined(__clang__)
constexpr const char* kCompiler = __VERSION__;  // begins with its name
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif
#if defined(__x86_64__)
constexpr const char* kIsa = "avx2";  // valgrind knows no later one
constexpr const char* kArchitecture = "x86_64";
#else
constexpr const char* kIsa = "auto";
constexpr const char* kArchitecture = "other";
#endif

struct Cell {
  torii_collective collective;
  std::size_t bytes;
  bool blocking;  ///< the counted rank runs the call; its peer has started before and ends after
  int rank;       ///< whose instructions count
};

/// The all-gather by which two threads of this process join.
class Exchange {
 public:
  void gather(int rank, const void* mine, void* all, std::size_t bytes) {
    if (rank == 0) bytes_.resize(bytes * kRanks);
    barrier_.arrive_and_wait();
    std::memcpy(bytes_.data() + bytes * static_cast<std::size_t>(rank), mine, bytes);
    barrier_.arrive_and_wait();
    std::memcpy(all, bytes_.data(), bytes_.size());
    barrier_.arrive_and_wait();
  }

 private:
  std::barrier<> barrier_{kRanks};
  std::vector<std::byte> bytes_;
};

/// One rank: its context, team and vectors.
class Rank {
 public:
  void leave_team() { check(torii_team_destroy(team_), "cannot end the team"); }
  /// When both ranks have left the team: they share one mapping of the memory in which they put.
  void leave_job() { check(torii_context_destroy(context_), "cannot end the context"); }

  /// Collective: blocks until the other rank does it too.
  void join(int rank, Exchange& exchange, const std::string& settings) {
    struct Seat {
      Exchange* exchange;
      int rank;
    } seat{&exchange, rank};
    torii_context_options options{};
    options.size = sizeof(options);
    options.rank = rank;
    options.ranks = kRanks;
    options.exchange = [](const void* mine, void* all, std::size_t bytes, void* data) {
      const auto* const at = static_cast<const Seat*>(data);
      at->exchange->gather(at->rank, mine, all, bytes);
      return 0;
    };
    options.exchange_data = &seat;
    options.settings = settings.c_str();
    check(torii_context_create(&options, &context_), "cannot join");
    check(torii_team_create(context_, nullptr, &team_), "cannot make the team");
  }

  Turn turn(const Cell& cell) {
    const std::size_t elements = cell.bytes / sizeof(float);
    input_.reset(static_cast<float*>(std::aligned_alloc(kAlignBytes, kAlignBytes + cell.bytes)));
    result_.reset(static_cast<float*>(std::aligned_alloc(kAlignBytes, kAlignBytes + cell.bytes)));
    std::fill_n(input_.get(), elements, 1.0F);
    std::fill_n(result_.get(), elements, 1.0F);
    Turn turn{team_, {}};
    turn.call.size = sizeof(turn.call);
    turn.call.collective = cell.collective;
    turn.call.input = input_.get();
    turn.call.result = result_.get();
    turn.call.count = has_blocks(cell.collective) ? elements / kRanks : elements;
    turn.call.type = TORII_F32;
    turn.call.op = TORII_SUM;
    return turn;
  }

  /// Both ranks gave ones.
  bool is_right(const Cell& cell) const {
    const float expected = combines(cell.collective) ? static_cast<float>(kRanks) : 1;
    const float* const begin = result_.get();
    return std::all_of(begin, begin + cell.bytes / sizeof(float), [&](float value) { return value == expected; });
  }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  torii_context* context_ = nullptr;
  torii_team* team_ = nullptr;
  std::unique_ptr<float, Free> input_, result_;
};

void step(Step what, Turn& turn, bool counts) {
  check(counts ? torii_perf_counted(what, &turn) : torii_perf_uncounted(what, &turn), "a call failed");
}

/// One call on both ranks; the counted rank's steps are counted if `counts`.
void call_once(const Cell& cell, std::array<Turn, kRanks>& turns, bool counts) {
  Turn& mine = turns[static_cast<std::size_t>(cell.rank)];
  Turn& peers = turns[static_cast<std::size_t>(1 - cell.rank)];
  mine.done = peers.done = 0;
  // The peer's start alone need not put its part: that happens when it is moved on.
  step(Step::start, peers, false);
  step(Step::test, peers, false);
  if (cell.blocking) {
    step(Step::run, mine, counts);
    mine.done = 1;
  } else {
    step(Step::start, mine, counts);
  }
  for (int i = 0; mine.done == 0 || peers.done == 0; ++i) {
    if (i == kTestsMost) throw Failure(kWrongData, "a call does not end");
    if (mine.done == 0) step(Step::test, mine, counts);
    if (peers.done == 0) step(Step::test, peers, false);
  }
}

const char* name_of_way(const Cell& cell) { return cell.blocking ? "blocking" : "started"; }

void count_cell(const Cell& cell, std::array<Rank, kRanks>& ranks, int warm_up, int calls) {
  std::array<Turn, kRanks> turns{ranks[0].turn(cell), ranks[1].turn(cell)};
  // A first call installs plans together with the peer, so a rank cannot end it alone.
  Cell first = cell;
  first.blocking = false;
  for (int i = 0; i < kFirstCalls; ++i) call_once(first, turns, false);
  for (int i = 0; i < warm_up; ++i) call_once(cell, turns, false);
  for (int i = 0; i < calls; ++i) call_once(cell, turns, true);
  torii_perf_cell_ends();
  const bool right = ranks[0].is_right(cell) && ranks[1].is_right(cell);
  std::printf("%s %s %s %d %d\n", name(cell.collective), bytes_text(cell.bytes).c_str(), name_of_way(cell), cell.rank,
              calls);
  std::fflush(stdout);
  if (!right) throw Failure(kWrongData, std::string("wrong data of ") + name(cell.collective));
}

/// Blocking calls only up to the size for which a rank can end alone, its peer having put its part before.
std::vector<Cell> cells() {
  constexpr std::size_t kEndsAloneBytes = 8;
  std::vector<Cell> all;
  for (const torii_collective collective : {TORII_ALLREDUCE, TORII_BROADCAST, TORII_ALLTOALL}) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{1024}, std::size_t{65536}}) {
      for (const bool blocking : {true, false}) {
        if (blocking && bytes > kEndsAloneBytes) continue;
        for (int rank = 0; rank < kRanks; ++rank) all.push_back({collective, bytes, blocking, rank});
      }
    }
  }
  return all;
}

int count(int argc, char** argv) {
  int warm_up = 300, calls = 100;
  std::string isa = kIsa;
  const CommandLine app(
      "Calls of two ranks in one thread, for callgrind; perf/instructions runs it and prints what it counts.");
  app.add_option("-n", calls, "counted calls of each cell").range(1, 1000000).show_default();
  app.add_option("-w", warm_up, "calls before them").range(3, 1000000).show_default();
  app.add_option("--isa", isa, "instruction set of the kernels").show_default();
  if (!parse_command_line(app, argc, argv, "instructions_perf -n 10")) return kOk;
  // Whatever the environment and the number of CPUs, the same code runs.
  const std::string settings = "TRANSPORT=shared_memory\nWAIT=spin\nTIMEOUT=60\nISA=" + isa;
  // perf/instructions compares counts only where this line is the same.
  std::printf("# built by %s for %s, isa %s\n", kCompiler, kArchitecture, isa.c_str());
  Exchange exchange;
  std::array<Rank, kRanks> ranks;
  std::array<std::exception_ptr, kRanks> failures;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ranks[rank].join(static_cast<int>(rank), exchange, settings);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  for (const Cell& cell : cells()) count_cell(cell, ranks, warm_up, calls);
  for (Rank& rank : ranks) rank.leave_team();
  for (Rank& rank : ranks) rank.leave_job();
  return kOk;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  return torii::perf::run_program(argv, [&] { return torii::perf::count(argc, argv); });
}
