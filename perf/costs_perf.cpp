// SPDX-License-Identifier: Apache-2.0
// Measures the costs of a job beside its calls: joining, teams, first calls, memory, CPU time of ranks that wait. See
// costs_perf --help.
#include <torii/torii.h>

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "perf/common/failure.hpp"
#include "perf/common/job.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/meeting.hpp"
#include "perf/common/program.hpp"

namespace torii::perf {
namespace {

struct CostsOptions {
  int ranks = 0;
  int repeats = 21;
  std::string json, settings;
};

/// KiB that this process has for itself, and its share of memory that it maps with others; files do not count.
double memory_kib() {
  std::ifstream file("/proc/self/smaps_rollup");
  double kib = 0;
  for (std::string word; file >> word;) {
    double value = 0;
    if ((word == "Pss_Anon:" || word == "Pss_Shmem:") && file >> value) kib += value;
  }
  return kib;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Teams of one team's ranks: all of them, or two halves. They go where the next one is made, or at the end.
class TeamSubject : public Subject {
 public:
  TeamSubject(const Job& job, bool splits) : job_(job), splits_(splits) {}
  ~TeamSubject() override { torii_team_destroy(team_); }
  void prepare(int) override { drop(); }
  torii_status call() override {
    if (splits_) return torii_team_split(job_.team(), job_.rank() % 2, 0, nullptr, &team_);
    return torii_team_create(job_.context(), nullptr, &team_);
  }

 protected:
  torii_status drop() {
    const torii_status status = torii_team_destroy(team_);
    team_ = nullptr;
    return status;
  }

 private:
  const Job& job_;
  bool splits_;
  torii_team* team_ = nullptr;
};

class DestroySubject : public TeamSubject {
 public:
  explicit DestroySubject(const Job& job) : TeamSubject(job, false) {}
  void prepare(int) override { check(TeamSubject::call(), "cannot make a team"); }
  torii_status call() override { return drop(); }
};

/// Allreduces of about 4 KiB. New lengths have plans to be made and installed.
class CallSubject : public Subject {
 public:
  CallSubject(torii_team* team, bool is_new) : team_(team), is_new_(is_new), data_(kElements + kCalls) {}
  void prepare(int) override { elements_ = is_new_ ? kElements + calls_++ % kCalls : kElements; }
  torii_status call() override {
    return torii_allreduce(team_, data_.data(), data_.data(), elements_, TORII_F32, TORII_SUM);
  }

 private:
  static constexpr size_t kElements = 1000, kCalls = 5000;

  torii_team* team_;
  bool is_new_;
  std::vector<float> data_;
  size_t elements_ = kElements, calls_ = 0;
};

/// One exchange of what a team's members must tell each other at least: the least that making a team can cost.
class ExchangeSubject : public Subject {
 public:
  explicit ExchangeSubject(const Job& job) : job_(job), all_(static_cast<size_t>(job.ranks()) * kBytes) {}
  void prepare(int) override {}
  torii_status call() override { return torii_all_gather(job_.team(), mine_, all_.data(), kBytes, TORII_U8); }

 private:
  static constexpr size_t kBytes = 64;

  const Job& job_;
  char mine_[kBytes] = {};
  std::vector<char> all_;
};

class CostsReport {
 public:
  explicit CostsReport(const std::string& json) : lines_(json, Output::Mode::append) {}
  void header() {
    std::fprintf(lines_.table(), "# %5s  %-28s %12s %12s  %-6s %s\n", "ranks", "cost", "torii", "least", "unit",
                 "the least is");
  }
  /// `least` is what any library would pay; its text says how it was measured. Without a text there is none.
  void add(int ranks, const std::string& cost, double value, const std::string& unit, double least = 0,
           const std::string& least_is = "") {
    char text[32] = "-";
    if (!least_is.empty()) std::snprintf(text, sizeof(text), "%.2f", least);
    std::fprintf(lines_.table(), "  %5d  %-28s %12.2f %12s  %-6s %s\n", ranks, cost.c_str(), value, text, unit.c_str(),
                 least_is.c_str());
    std::fflush(lines_.table());
    nlohmann::ordered_json json = {{"cost", cost}, {"ranks", ranks}, {"value", value}, {"unit", unit}};
    if (!least_is.empty()) json.update({{"least", least}, {"least_is", least_is}});
    lines_.add(std::move(json));
  }

 private:
  JsonLines lines_;
};

class Costs {
 public:
  Costs(const CostsOptions& options, int64_t begun_ns)
      : options_(options), begun_ns_(begun_ns), memory_at_start_kib_(memory_kib()), job_(options.settings) {
    joined_ns_ = now_ns();
  }

  void measure() {
    if (job_.rank() == 0) {
      report_.emplace(options_.json);
      report_->header();
    }
    Meeting meeting(job_);
    joining();
    memory();
    teams(meeting);
    first_calls(meeting);
    waiting(meeting);
  }

 private:
  void say(const std::string& cost, double value, const std::string& unit, double least = 0,
           const std::string& least_is = "") {
    if (report_) report_->add(job_.ranks(), cost, value, unit, least, least_is);
  }
  double time_us(Meeting& meeting, Subject& subject) const {
    return median(run_block(job_, meeting, Timing::isolated, options_.repeats, subject).durations_ns) / 1e3;
  }

  /// All processes read one clock.
  void joining() {
    const int64_t last_start = job_.max(begun_ns_), first_start = -job_.max(-begun_ns_), last = job_.max(joined_ns_);
    say("job, from start to teams", static_cast<double>(last - first_start) / 1e6, "ms",
        static_cast<double>(last_start - first_start) / 1e6, "from the first process's start to the last one's");
  }

  void memory() {
    constexpr int kTeams = 16;
    check(CallSubject(job_.team(), false).call(), "a call failed");
    job_.barrier();
    const double joined = memory_kib();
    std::vector<torii_team*> teams(kTeams);
    for (torii_team*& team : teams) {
      check(torii_team_create(job_.context(), nullptr, &team), "cannot make a team");
      check(CallSubject(team, false).call(), "a call failed");
    }
    job_.barrier();
    const double with_teams = memory_kib();
    job_.barrier();
    for (torii_team* const team : teams) torii_team_destroy(team);
    say("memory of a rank", mean(joined - memory_at_start_kib_), "KiB");
    say("memory of a team and a plan", mean((with_teams - joined) / kTeams), "KiB");
  }

  /// Over ranks.
  double mean(double kib) const { return static_cast<double>(job_.sum(static_cast<int64_t>(kib))) / job_.ranks(); }

  void teams(Meeting& meeting) {
    ExchangeSubject exchange(job_);
    TeamSubject create(job_, false), split(job_, true);
    DestroySubject destroy(job_);
    const double exchange_us = time_us(meeting, exchange);
    const char* const least_is = "an all_gather of 64 bytes";
    say("make a team", time_us(meeting, create), "us", exchange_us, least_is);
    say("split a team in two", time_us(meeting, split), "us", exchange_us, least_is);
    say("destroy a team", time_us(meeting, destroy), "us");
  }

  void first_calls(Meeting& meeting) {
    CallSubject again(job_.team(), false), first(job_.team(), true);
    time_us(meeting, again);
    const double again_us = time_us(meeting, again);
    say("first call of a shape, 4 KB", time_us(meeting, first), "us", again_us, "the call made again");
  }

  void waiting(Meeting& meeting) {
    constexpr timespec kLate = {0, 300'000'000};
    meeting.wait();
    const double before = cpu_seconds();
    const int64_t begun = now_ns();
    if (job_.rank() == 0) nanosleep(&kLate, nullptr);
    check(torii_barrier(job_.team()), "a barrier failed");
    const double share = (cpu_seconds() - before) / (static_cast<double>(now_ns() - begun) * 1e-9);
    const auto mine = static_cast<int64_t>(job_.rank() == 0 ? 0 : share * 1e6);
    const auto waiting_ranks = std::max(1, job_.ranks() - 1);
    say("CPU of a waiting rank", static_cast<double>(job_.sum(mine)) / waiting_ranks * 1e-4, "%");
  }

  CostsOptions options_;
  int64_t begun_ns_, joined_ns_ = 0;
  double memory_at_start_kib_;
  Job job_;
  std::optional<CostsReport> report_;
};

bool parse(int argc, char** argv, CostsOptions& options) {
  std::vector<std::string> settings;
  const CommandLine app("Measures what a job pays beside its calls: joining, teams, first calls, memory, waiting.");
  app.add_option("--ranks", options.ranks, "start so many ranks here").range(1, 1024);
  app.add_option("-n,--repeats", options.repeats, "teams and first calls of which the median is taken")
      .range(1, 1000)
      .show_default();
  app.add_option("--set", settings, "a setting of the library, NAME=value; may be given several times");
  app.add_option("--json", options.json, "append one JSON object per line to this file; -: stdout");
  if (!parse_command_line(app, argc, argv, "costs_perf --ranks 2", speaks())) return false;
  for (const std::string& line : settings) options.settings += line + "\n";
  return true;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  using namespace torii::perf;
  const int64_t begun_ns = now_ns();
  return run_program(argv, [&] {
    CostsOptions options;
    if (!parse(argc, argv, options)) return static_cast<int>(kOk);
    start_asked_ranks(options.ranks, argc, argv);
    Costs(options, begun_ns).measure();
    return static_cast<int>(kOk);
  });
}
