// SPDX-License-Identifier: Apache-2.0
// Calls of two and four ranks that one thread drives, for callgrind to count: perf/instructions runs this program and
// says how many instructions a call takes on each rank. With one thread nothing depends on how fast the machine is just
// now. callgrind counts inside torii_perf_counted() and writes what it has counted after each torii_perf_cell_ends().
#include <torii/torii.h>

#include <algorithm>
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

enum class Step { run, named, start, test };

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
static torii_status torii_perf_named(torii_team* team, const torii_call& call) {
  if (call.collective == TORII_ALLREDUCE) {
    return torii_allreduce(team, call.input, call.result, call.count, call.type, call.op);
  }
  if (call.collective == TORII_BROADCAST) return torii_broadcast(team, call.result, call.count, call.type, call.root);
  return torii_alltoall(team, call.input, call.result, call.count, call.type);
}
[[gnu::noinline]] torii_status torii_perf_uncounted(torii::perf::Step step, torii::perf::Turn* turn) {
  torii_status status = TORII_OK;
  switch (step) {
    case torii::perf::Step::run:
      status = torii_run(turn->team, &turn->call);
      break;
    case torii::perf::Step::named:
      status = torii_perf_named(turn->team, turn->call);
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

constexpr std::size_t kAlignBytes = 4096;
constexpr int kTestsMost = 100000;
constexpr int kFirstCalls = 10;
constexpr std::size_t kTurnBytes = 8;  ///< by so much the second of two lengths is greater
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

/// How the counted rank calls. Its peers start before it and end after it.
enum class Way {
  blocking,  ///< torii_run
  named,     ///< torii_allreduce and the like
  turns,     ///< the same, two lengths by turns
  started    ///< torii_start and torii_test
};

struct Cell {
  torii_collective collective;
  std::size_t bytes;
  Way way;
  int rank;  ///< whose instructions count
};

/// The all-gather by which threads of this process join.
class Exchange {
 public:
  explicit Exchange(int ranks) : ranks_(static_cast<std::size_t>(ranks)), barrier_(ranks) {}
  void gather(int rank, const void* mine, void* all, std::size_t bytes) {
    if (rank == 0) bytes_.resize(bytes * ranks_);
    barrier_.arrive_and_wait();
    std::memcpy(bytes_.data() + bytes * static_cast<std::size_t>(rank), mine, bytes);
    barrier_.arrive_and_wait();
    std::memcpy(all, bytes_.data(), bytes_.size());
    barrier_.arrive_and_wait();
  }

 private:
  std::size_t ranks_;
  std::barrier<> barrier_;
  std::vector<std::byte> bytes_;
};

/// One rank: its context, team and vectors.
class Rank {
 public:
  void leave_team() { check(torii_team_destroy(team_), "cannot end the team"); }
  /// When all ranks have left the team: they share one mapping of the memory in which they put.
  void leave_job() { check(torii_context_destroy(context_), "cannot end the context"); }

  /// Collective: blocks until the other ranks do it too.
  void join(int rank, int ranks, Exchange& exchange, const std::string& settings) {
    struct Seat {
      Exchange* exchange;
      int rank;
    } seat{&exchange, rank};
    torii_context_options options{};
    options.size = sizeof(options);
    options.rank = rank;
    options.ranks = ranks;
    ranks_ = static_cast<std::size_t>(ranks);
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
    const std::size_t room = elements + ranks_ * kTurnBytes / sizeof(float);
    std::fill_n(input_.get(), room, 1.0F);
    std::fill_n(result_.get(), room, 1.0F);
    Turn turn{team_, {}};
    turn.call.size = sizeof(turn.call);
    turn.call.collective = cell.collective;
    turn.call.input = input_.get();
    turn.call.result = result_.get();
    turn.call.count = has_blocks(cell.collective) ? elements / ranks_ : elements;
    turn.call.type = TORII_F32;
    turn.call.op = TORII_SUM;
    return turn;
  }

  /// All ranks gave ones.
  bool is_right(const Cell& cell) const {
    const float expected = combines(cell.collective) ? static_cast<float>(ranks_) : 1;
    const float* const begin = result_.get();
    return std::all_of(begin, begin + cell.bytes / sizeof(float), [&](float value) { return value == expected; });
  }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  torii_context* context_ = nullptr;
  torii_team* team_ = nullptr;
  std::size_t ranks_ = 0;
  std::unique_ptr<float, Free> input_, result_;
};

void step(Step what, Turn& turn, bool counts) {
  check(counts ? torii_perf_counted(what, &turn) : torii_perf_uncounted(what, &turn), "a call failed");
}

/// One call on all ranks; the counted rank's steps are counted if `counts`.
void call_once(const Cell& cell, std::vector<Turn>& turns, bool counts) {
  Turn& mine = turns[static_cast<std::size_t>(cell.rank)];
  const auto move_peers = [&](Step what) {
    for (Turn& one : turns) {
      if (&one != &mine && one.done == 0) step(what, one, false);
    }
  };
  for (Turn& one : turns) one.done = 0;
  // A peer's start alone need not put its part: that happens when it is moved on.
  move_peers(Step::start);
  move_peers(Step::test);
  if (cell.way == Way::started) {
    step(Step::start, mine, counts);
  } else {
    step(cell.way == Way::blocking ? Step::run : Step::named, mine, counts);
    mine.done = 1;
  }
  for (int i = 0; std::ranges::any_of(turns, [](const Turn& one) { return one.done == 0; }); ++i) {
    if (i == kTestsMost) throw Failure(kWrongData, "a call does not end");
    if (mine.done == 0) step(Step::test, mine, counts);
    move_peers(Step::test);
  }
}

const char* name_of(Way way) {
  constexpr const char* kNames[] = {"blocking", "named", "turns", "started"};
  return kNames[static_cast<int>(way)];
}

void call_often(const Cell& cell, std::vector<Turn>& turns, int calls, bool counts) {
  for (int i = 0; i < calls; ++i) {
    const std::size_t other = cell.way == Way::turns && i % 2 != 0 ? kTurnBytes / sizeof(float) : 0;
    for (Turn& one : turns) one.call.count += other;
    call_once(cell, turns, counts);
    for (Turn& one : turns) one.call.count -= other;
  }
}

void count_cell(const Cell& cell, std::vector<Rank>& ranks, int warm_up, int calls) {
  std::vector<Turn> turns;
  for (Rank& rank : ranks) turns.push_back(rank.turn(cell));
  // A first call installs plans together with the peers, so a rank cannot end it alone.
  Cell first = cell;
  first.way = Way::started;
  call_often(first, turns, kFirstCalls, false);
  call_often(cell, turns, warm_up, false);
  call_often(cell, turns, calls, true);
  torii_perf_cell_ends();
  const bool right = std::ranges::all_of(ranks, [&](const Rank& rank) { return rank.is_right(cell); });
  std::printf("%s %s %s %zu %d %d\n", name(cell.collective), bytes_text(cell.bytes).c_str(), name_of(cell.way),
              ranks.size(), cell.rank, calls);
  std::fflush(stdout);
  if (!right) throw Failure(kWrongData, std::string("wrong data of ") + name(cell.collective));
}

/// Blocking calls only of the size for which a rank can end alone, its peers having put their parts before. Of four
/// ranks, the first and the last.
std::vector<Cell> cells_of(int ranks) {
  std::vector<Cell> all;
  for (const torii_collective collective : {TORII_ALLREDUCE, TORII_BROADCAST, TORII_ALLTOALL}) {
    const std::size_t least = ranks > 2 && has_blocks(collective) ? 16 : 8;
    for (const std::size_t bytes : {least, std::size_t{1024}, std::size_t{65536}}) {
      for (const Way way : {Way::blocking, Way::named, Way::turns, Way::started}) {
        if (way != Way::started && bytes != least) continue;
        if (way == Way::turns && ranks > 2) continue;
        for (const int rank : {0, ranks - 1}) all.push_back({collective, bytes, way, rank});
      }
    }
  }
  return all;
}

void count_job(int ranks_number, const std::string& settings, int warm_up, int calls) {
  Exchange exchange(ranks_number);
  std::vector<Rank> ranks(static_cast<std::size_t>(ranks_number));
  std::vector<std::exception_ptr> failures(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ranks[rank].join(static_cast<int>(rank), ranks_number, exchange, settings);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  for (const Cell& cell : cells_of(ranks_number)) count_cell(cell, ranks, warm_up, calls);
  for (Rank& rank : ranks) rank.leave_team();
  for (Rank& rank : ranks) rank.leave_job();
}

int count(int argc, char** argv) {
  int warm_up = 300, calls = 100;
  std::string isa = kIsa;
  const CommandLine app(
      "Calls of two and of four ranks in one thread, for callgrind; perf/instructions runs it and prints what it "
      "counts.");
  app.add_option("-n", calls, "counted calls of each cell").range(1, 1000000).show_default();
  app.add_option("-w", warm_up, "calls before them").range(3, 1000000).show_default();
  app.add_option("--isa", isa, "instruction set of the kernels").show_default();
  if (!parse_command_line(app, argc, argv, "instructions_perf -n 10")) return kOk;
  // Whatever the environment and the number of CPUs, the same code runs.
  const std::string settings = "TRANSPORT=shared_memory\nWAIT=spin\nTIMEOUT=60\nISA=" + isa;
  // perf/instructions compares counts only where this line is the same.
  std::printf("# built by %s for %s, isa %s\n", kCompiler, kArchitecture, isa.c_str());
  for (const int ranks : {2, 4}) count_job(ranks, settings, warm_up, calls);
  return kOk;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  return torii::perf::run_program(argv, [&] { return torii::perf::count(argc, argv); });
}
