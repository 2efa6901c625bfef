// SPDX-License-Identifier: Apache-2.0
// Each rank keeps a histogram, its slow calls and the times at which it was seen on another CPU; rank 0 joins them.
#include "perf/busy_calls.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "perf/common/failure.hpp"
#include "perf/common/meeting.hpp"
#include "perf/common/names.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

/// A rank keeps the details of so many slow calls and moves; the others are counted.
constexpr size_t kKept = 1 << 16;
/// The saved line has the details of so many slow calls.
constexpr size_t kExamples = 8;

/// Durations in ns, each known to a sixteenth.
class Histogram {
 public:
  void add(int64_t ns) { ++counts_[place(static_cast<uint64_t>(std::max<int64_t>(ns, 1)))]; }
  /// The least duration that so large a part of the calls do not exceed, in us.
  double quantile_us(double part) const {
    uint64_t all = 0;
    for (const uint64_t count : counts_) all += count;
    const auto wanted = static_cast<uint64_t>(part * static_cast<double>(all));
    uint64_t below = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      below += counts_[i];
      if (below > wanted) return duration_ns(i) * 1e-3;
    }
    return 0;
  }

 private:
  static constexpr int kBits = 4;

  static size_t place(uint64_t ns) {
    const auto exponent = static_cast<int>(std::bit_width(ns)) - 1;
    const uint64_t rest = exponent >= kBits ? ns >> (exponent - kBits) : ns << (kBits - exponent);
    return (static_cast<size_t>(exponent) << kBits) + (rest & ((1U << kBits) - 1));
  }
  /// The middle of that place.
  static double duration_ns(size_t place) {
    const double part = (static_cast<double>(place & ((1U << kBits) - 1)) + 0.5) / (1U << kBits);
    return static_cast<double>(uint64_t{1} << (place >> kBits)) * (1 + part);
  }

  std::array<uint64_t, size_t{64} << kBits> counts_{};
};

struct SlowCall {
  int64_t begin_ns, end_ns;
  int64_t switches;  ///< in which the rank would have gone on to run, its yields among them
  int64_t ran_ns;    ///< CPU time
};

/// From then on the rank was seen on that CPU.
struct Move {
  int64_t at_ns, cpu;
};

/// So far, of this thread.
struct Usage {
  int64_t switches, ran_ns;

  static Usage now() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const auto ns = [](const timeval& time) { return (int64_t{time.tv_sec} * 1'000'000 + time.tv_usec) * 1000; };
    return {usage.ru_nivcsw, ns(usage.ru_utime) + ns(usage.ru_stime)};
  }
};

/// A rank's notes of its own calls.
class CallLog {
 public:
  CallLog(int64_t slow_ns, int64_t begin_ns) : slow_ns_(slow_ns), usage_(Usage::now()) {
    slow_.reserve(kKept);
    moves_.reserve(kKept);
    moves_.push_back({begin_ns, sched_getcpu()});
  }
  void add(int64_t begin_ns, int64_t end_ns) {
    const int64_t ns = end_ns - begin_ns;
    ++calls_;
    histogram_.add(ns);
    worst_ns_ = std::max(worst_ns_, ns);
    if (const int cpu = sched_getcpu(); cpu != moves_.back().cpu && moves_.size() < kKept) {
      moves_.push_back({end_ns, cpu});
    }
    if (ns <= slow_ns_) return;
    slow_time_ns_ += ns;
    ++slow_calls_;
    // Fast calls have no switch, so all since the last slow one are of this call. It did not run longer than it took.
    const Usage usage = Usage::now();
    if (slow_.size() < kKept) {
      slow_.push_back({begin_ns, end_ns, usage.switches - usage_.switches, std::min(ns, usage.ran_ns - usage_.ran_ns)});
    }
    usage_ = usage;
  }
  int64_t calls() const { return calls_; }
  int64_t slow_calls() const { return slow_calls_; }
  int64_t slow_time_ns() const { return slow_time_ns_; }
  int64_t worst_ns() const { return worst_ns_; }
  const Histogram& histogram() const { return histogram_; }
  const std::vector<SlowCall>& slow() const { return slow_; }
  const std::vector<Move>& moves() const { return moves_; }

 private:
  int64_t slow_ns_;
  Usage usage_;
  int64_t calls_ = 0, slow_calls_ = 0, slow_time_ns_ = 0, worst_ns_ = 0;
  Histogram histogram_;
  std::vector<SlowCall> slow_;
  std::vector<Move> moves_;
};

/// Every rank's rows, which may differ in number.
template <class Row>
std::vector<std::vector<Row>> gather_rows(const Job& job, const std::vector<Row>& mine) {
  const std::array<int64_t, 1> count = {static_cast<int64_t>(mine.size())};
  const std::vector<int64_t> counts = job.gather(count);
  const auto most = static_cast<size_t>(std::max<int64_t>(*std::ranges::max_element(counts), 1));
  std::vector<Row> padded = mine;
  padded.resize(most);
  std::vector<Row> all(most * counts.size());
  job.gather_bytes(padded.data(), all.data(), most * sizeof(Row));
  std::vector<std::vector<Row>> rows;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    const Row* const first = &all[rank * most];
    rows.emplace_back(first, first + counts[rank]);
  }
  return rows;
}

int64_t cpu_at(const std::vector<Move>& moves, int64_t ns) {
  const auto after = std::ranges::upper_bound(moves, ns, std::less<>(), [](const Move& move) { return move.at_ns; });
  return after == moves.begin() ? moves.front().cpu : (after - 1)->cpu;
}

/// The slow calls of the rank that overlap this one.
Usage usage_within(const std::vector<SlowCall>& calls, const SlowCall& of) {
  auto one =
      std::ranges::upper_bound(calls, of.begin_ns, std::less<>(), [](const SlowCall& call) { return call.end_ns; });
  Usage usage{};
  for (; one != calls.end() && one->begin_ns < of.end_ns; ++one) {
    usage.switches += one->switches;
    usage.ran_ns += one->ran_ns;
  }
  return usage;
}

/// Rank 0's account of the slow calls: on which CPUs the ranks were, and how often each lost its own.
nlohmann::ordered_json join_slow(const std::vector<std::vector<SlowCall>>& slow,
                                 const std::vector<std::vector<Move>>& moves) {
  std::vector<int64_t> switches(slow.size()), moved(slow.size());
  int64_t together = 0;
  nlohmann::ordered_json examples = nlohmann::ordered_json::array();
  for (const SlowCall& call : slow[0]) {
    std::vector<int64_t> cpus, of_call, ran_us;
    for (size_t rank = 0; rank < slow.size(); ++rank) {
      cpus.push_back(cpu_at(moves[rank], call.begin_ns));
      const Usage usage = usage_within(slow[rank], call);
      of_call.push_back(usage.switches);
      ran_us.push_back(usage.ran_ns / 1000);
      switches[rank] += of_call.back();
    }
    std::vector<int64_t> sorted = cpus;
    std::ranges::sort(sorted);
    together += std::ranges::adjacent_find(sorted) != sorted.end() ? 1 : 0;
    if (examples.size() < kExamples) {
      examples.push_back({{"us", static_cast<double>(call.end_ns - call.begin_ns) * 1e-3},
                          {"cpus", cpus},
                          {"switches", of_call},
                          {"ran_us", ran_us}});
    }
  }
  for (size_t rank = 0; rank < moves.size(); ++rank) moved[rank] = static_cast<int64_t>(moves[rank].size()) - 1;
  return {{"slow_kept", slow[0].size()},
          {"slow_on_one_cpu", together},
          {"slow_switches", switches},
          {"moves", moved},
          {"slow_calls_first", examples}};
}

/// The calls of a rank, until rank 0 has made them for so long.
CallLog make_calls(const Job& job, const BusyOptions& options, BusyCall& call) {
  job.barrier();
  int64_t begin_ns = now_ns();
  const int64_t end_ns = begin_ns + static_cast<int64_t>(options.seconds * 1e9);
  CallLog log(int64_t{options.slow_us} * 1000, begin_ns);
  for (bool last = false; !last;) {
    last = call.run(job.rank() == 0 && begin_ns >= end_ns ? 1 : 0) != 0;
    const int64_t now = now_ns();
    log.add(begin_ns, now);
    begin_ns = now;
  }
  return log;
}

}  // namespace

void add_busy_flags(const CommandLine& app, BusyOptions& options, const std::vector<std::string>& kinds) {
  app.add_option("--seconds", options.seconds, "how long the calls go on").range(0.01, 3600.0).show_default();
  app.add_option("--slow", options.slow_us, "calls that take more microseconds are slow")
      .range(1, 1'000'000)
      .show_default();
  app.add_option("--kind", options.kind, "which calls of 8 bytes").one_of(kinds).show_default();
  app.add_option("--cpus", options.cpus, "bind rank r to CPU number r of this list; default: bind none");
  app.add_option("--setting", options.setting, "what to call this in the report");
  app.add_option("--json", options.json, "append one JSON object to this file; -: stdout");
}

void bind_rank(const BusyOptions& options, int rank, int ranks) {
  if (options.cpus.empty()) return;
  const std::vector<std::string> cpus = split_list(options.cpus);
  const auto at = static_cast<size_t>(rank);
  if (cpus.size() < static_cast<size_t>(ranks)) {
    throw Failure(kBadCommandLine, "--cpus '" + options.cpus + "' has " + std::to_string(cpus.size()) + " CPUs for " +
                                       std::to_string(ranks) + " ranks");
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  const auto cpu = parse_number<size_t>(cpus[at]);
  if (cpu && *cpu < CPU_SETSIZE) CPU_SET(*cpu, &set);
  if (sched_setaffinity(0, sizeof(set), &set) == 0) return;
  throw Failure(kBadCommandLine, "--cpus: rank " + std::to_string(rank) + " cannot be bound to CPU '" + cpus[at] +
                                     "': " + std::strerror(errno));
}

void measure_busy(const Job& job, const BusyOptions& options, BusyCall& call) {
  const CallLog log = make_calls(job, options, call);
  const auto slow = gather_rows(job, log.slow());
  const auto moves = gather_rows(job, log.moves());
  const std::array<int64_t, 1> own_hops = {call.hops()};
  const std::vector<int64_t> hops = job.gather(own_hops);
  const std::array<int64_t, 1> own_session = {getsid(0)};
  const std::vector<int64_t> sessions = job.gather(own_session);
  if (job.rank() != 0) return;
  const double calls = static_cast<double>(log.calls());
  double seconds = options.seconds;
  nlohmann::ordered_json row = {{"setting", options.setting},
                                {"kind", options.kind},
                                {"ranks", job.ranks()},
                                {"seconds", seconds},
                                {"calls", log.calls()},
                                {"mean_us", seconds * 1e6 / calls},
                                {"median_us", log.histogram().quantile_us(0.5)},
                                {"p99_us", log.histogram().quantile_us(0.99)},
                                {"p99_9_us", log.histogram().quantile_us(0.999)},
                                {"worst_us", static_cast<double>(log.worst_ns()) * 1e-3},
                                {"slow_us", options.slow_us},
                                {"slow_calls", log.slow_calls()},
                                {"slow_part", static_cast<double>(log.slow_calls()) / calls},
                                {"slow_time_part", static_cast<double>(log.slow_time_ns()) * 1e-9 / seconds},
                                {"hops", hops},
                                {"sessions", sessions}};
  row.update(join_slow(slow, moves));
  JsonLines lines(options.json, Output::Mode::append);
  std::fprintf(lines.table(),
               "%lld calls, mean %.2f us, median %.2f, 99 %% %.2f, 99.9 %% %.1f, worst %.0f; above %d us: %lld calls "
               "(%.4f %%), of them %lld with two ranks on one CPU\n",
               static_cast<long long>(log.calls()), row["mean_us"].get<double>(), row["median_us"].get<double>(),
               row["p99_us"].get<double>(), row["p99_9_us"].get<double>(), row["worst_us"].get<double>(),
               options.slow_us, static_cast<long long>(log.slow_calls()), row["slow_part"].get<double>() * 100,
               static_cast<long long>(row["slow_on_one_cpu"].get<int64_t>()));
  lines.add(std::move(row));
}

}  // namespace torii::perf
