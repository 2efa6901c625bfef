// SPDX-License-Identifier: Apache-2.0
// The command line of torii-sim faults, and what it prints.
#include "tools/torii-sim/faults/command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "runtime/base/numbers.hpp"
#include "runtime/base/output.hpp"
#include "runtime/base/status.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-sim/faults/case.hpp"
#include "tools/torii-sim/faults/picture.hpp"
#include "tools/torii-sim/faults/run.hpp"

namespace torii::tools {
namespace {

using namespace faults;

struct Flags {
  std::string seeds = "1..1000";
  std::optional<std::uint64_t> replay;
  std::string without;
  bool trace = false;
  std::string svg;
  int processes = 0;
  std::size_t failures = 10;
};

Run read_run(const Flags& flags) {
  Run run;
  std::string_view text = flags.seeds;
  const auto first = take_number<std::uint64_t>(text);
  const bool is_range = text.starts_with("..");
  if (is_range) text.remove_prefix(2);
  const auto last = is_range ? take_number<std::uint64_t>(text) : first;
  if (!first || !last || !text.empty() || *last < *first) {
    throw Error(Status::invalid_argument, "--seeds is '" + flags.seeds + "'; it must be like 1..1000, or one number");
  }
  run.first = *first;
  run.last = *last;
  run.processes =
      flags.processes > 0 ? flags.processes : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  run.failures_most = flags.failures;
  return run;
}

std::string counts_text(const std::map<std::string, std::uint64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  return text.empty() ? "none" : text;
}

void print(const Tally& tally, double seconds) {
  const Counts& counts = tally.counts;
  fmt::print("histories      {}\n", counts.histories);
  fmt::print("calls          {} returned ok, {} failed with a cause, {} were refused\n", counts.calls,
             counts.failed_calls, counts.refused_calls);
  fmt::print("survivors      {} teams joined by a rank\n", counts.survivors);
  fmt::print("faults         {}\n", counts_text(tally.faults));
  fmt::print("deaths while   {}\n", counts_text(tally.deaths));
  fmt::print("memory         refused {} times\n", counts.memory_refusals);
  fmt::print("steps          {} points, {} turns, {} messages\n", counts.points, counts.turns, counts.messages);
  fmt::print("time           {:.2f} h virtual, {:.1f} s real, {:.0f} points per second\n",
             static_cast<double>(counts.virtual_ns) / 3600e9, seconds, static_cast<double>(counts.points) / seconds);
  fmt::print("failures       {}\n", tally.failures.size());
}

int run_all(const Flags& flags) {
  const Run all = read_run(flags);
  const auto begun = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(); };
  const bool is_watched = isatty(fileno(stderr)) != 0;
  const Tally tally = faults::run(all, [&](const Tally& so_far) {
    if (!is_watched) return;
    fmt::print(stderr, "\r{} of {} histories, {} failures, {:.0f} s ", so_far.counts.histories,
               all.last - all.first + 1, so_far.failures.size(), seconds());
  });
  if (is_watched) fmt::print(stderr, "\n");
  print(tally, seconds());
  for (const Failure& failure : tally.failures) {
    fmt::print("\nFAILED: torii-sim faults --replay {}\n{}", failure.seed, failure.text);
  }
  if (tally.failures.empty()) return kDone;
  const std::uint64_t seed = tally.failures.front().seed;
  History history = draw_history(seed);
  const std::string names = shorten(history);
  leave_out(history, names);
  fmt::print("\nThe first failure needs no more than this: torii-sim faults --replay {}{}{}\n{}{}", seed,
             names.empty() ? "" : " --without ", names, text_of(history), faults::replay(history).failure);
  return kWrong;
}

int replay(const Flags& flags) {
  History history = draw_history(*flags.replay);
  if (!flags.without.empty()) leave_out(history, flags.without);
  const Output svg(flags.svg);  // a file that cannot be written is an error before anything runs
  fmt::print("{}", text_of(history));
  std::fflush(stdout);
  fibers::Fibers::Note note;
  if (flags.trace) {
    note = [](fibers::Time now, int fiber, std::string_view what) {
      fmt::print("{:>14.3f} us  rank {}  {}\n", static_cast<double>(now) * 1e-3, fiber, what);
    };
  }
  EventLog log;
  const Verdict verdict = faults::run(history, note, svg ? &log : nullptr);
  if (svg) svg.write(draw(history, log));
  for (const std::string& line : verdict.failures) fmt::print("FAILED: {}\n", line);
  const Counts& counts = verdict.counts;
  fmt::print("{} calls ok, {} failed, {} points, {} turns, {} messages, {:.3f} ms, digest {:016x}\n", counts.calls,
             counts.failed_calls, counts.points, counts.turns, counts.messages,
             static_cast<double>(counts.virtual_ns) * 1e-6, verdict.digest);
  return verdict.failures.empty() ? kDone : kWrong;
}

}  // namespace

std::function<int()> add_faults(const CommandLine& command) {
  const auto flags = std::make_shared<Flags>();
  command.add_option("--seeds", flags->seeds, "the histories to run, as 1..1000 (default)");
  const CommandLine::Option replays =
      command.add_option("--replay", flags->replay, "run the history of this seed alone, and tell what it is");
  command.add_option("--without", flags->without, "with --replay: leave out steps and faults, as s3,s4,f0")
      .needs(replays);
  command.add_flag("--trace", flags->trace, "with --replay: print what happens").needs(replays);
  command.add_option("--svg", flags->svg, "with --replay: draw what happens into this file").needs(replays);
  command.add_option("--processes", flags->processes, "run so many histories at once (default: one for each CPU)")
      .range(1, 256);
  command.add_option("--failures", flags->failures, "end after so many failures (default: 10)").range(1, 1'000'000);
  return [flags] { return flags->replay ? replay(*flags) : run_all(*flags); };
}

}  // namespace torii::tools
