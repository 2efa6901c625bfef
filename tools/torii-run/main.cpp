// SPDX-License-Identifier: Apache-2.0
// torii-run: starts the ranks of a job on this machine.
#include <cstdio>
#include <string>
#include <vector>

#include "tools/command_line.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-run/job.hpp"

int main(int argc, char** argv) {
  using namespace torii::tools;
  // The most ranks that a command line may ask for, so that typing errors do not fill a machine.
  constexpr int kRanksMax = 1024;
  const CommandLine app(
      "torii-run -n N [options] -- program [args]\n"
      "Starts N ranks of a program on this machine, lets them join, and ends them together.",
      "torii-run");
  app.set_version("torii-run " TORII_VERSION);
  app.set_examples("torii-run -n 4 -- all_reduce_perf -b 8 -e 1M");
  JobOptions options;
  std::string on_failure = "end";
  int replacements = 3;
  app.add_option("-n", options.ranks, "number of ranks").required().range(1, kRanksMax);
  app.add_option("--timeout", options.timeout_s, "end the job after this many seconds, with code 4").range(0.001, 1e9);
  app.add_option("--on-failure", on_failure,
                 "what happens when a rank fails: the others end, they continue, or it is replaced")
      .one_of({"end", "continue", "replace"})
      .show_default();
  app.add_option("--replacements", replacements, "with --on-failure replace: this many; then a failure ends the job")
      .range(1, 1'000'000)
      .show_default();
  app.take_program();
  if (const auto code = parse(app, argc, argv)) return *code;

  options.continue_on_failure = on_failure == "continue";
  if (on_failure == "replace") options.replacements = replacements;
  options.command = app.remaining();
  if (!options.command.empty() && options.command[0] == "--") {
    options.command.erase(options.command.begin());
  } else if (!options.command.empty() && options.command[0].starts_with("-")) {
    std::fprintf(stderr, "torii-run: unknown flag %s; run torii-run --help\n", options.command[0].c_str());
    return kBadInput;
  }
  if (options.command.empty() || options.command[0].empty()) {
    std::fprintf(stderr, "torii-run: no program to start; run torii-run --help\n");
    return kBadInput;
  }
  return run_job(options);
}
