// SPDX-License-Identifier: Apache-2.0
// torii-info: what this build and this machine can do, and what torii would run for a call.
#include <torii/torii.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/output.hpp"
#include "runtime/base/status.hpp"
#include "tools/command_line.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-info/bits.hpp"
#include "tools/torii-info/constants.hpp"
#include "tools/torii-info/costs.hpp"
#include "tools/torii-info/doctor.hpp"
#include "tools/torii-info/measure.hpp"
#include "tools/torii-info/overview.hpp"
#include "tools/torii-info/phases.hpp"
#include "tools/torii-info/plan.hpp"
#include "tools/torii-info/report.hpp"
#include "tools/torii-info/tune.hpp"
#include "tools/torii-info/tune_measure.hpp"

namespace torii::tools {
namespace {

/// A flag that is the setting of the same name.
struct SettingFlag {
  const char* flag;
  const char* setting;
  const char* help;
};
constexpr std::array kPlanSettings = {
    SettingFlag{"--topology", "TOPOLOGY", "node, torus:4x4x4, torus:4x4x2m, mesh:8x8, torus:3x3*2, torus:4x4,ties"},
    SettingFlag{"--rank-map", "RANK_MAP", "a file with a line \"rank x y z\" per rank, or list:2,0,1,..."},
    SettingFlag{"--algorithm", "ALGORITHM", "force this one instead of asking the tune table"},
    SettingFlag{"--determinism", "DETERMINISM", "run, canonical"},
    SettingFlag{"--wire", "WIRE", "type, f32: how partial results of 16-bit floats travel"},
    SettingFlag{"--segment", "SEGMENT", "largest payload of one put in bytes, with K or M"},
    SettingFlag{"--slots", "SLOTS", "slots of every stream"},
    SettingFlag{"--window", "WINDOW", "segments of one lane in flight"},
};
constexpr SettingFlag kTuneFile = {"--tune-file", "TUNE_FILE", "tune table to read instead of the built-in one"};

void add_setting(const CommandLine& app, const SettingFlag& setting, std::string& overrides) {
  const auto append = [&overrides, setting](const std::string& value) {
    overrides += std::string(setting.setting) + "=" + value + "\n";
  };
  app.add_option(setting.flag, append, setting.help);
}

CommandLine add_plan(const CommandLine& app, PlanQuestion& question, std::string& svg) {
  const CommandLine plan = app.add_command("plan",
                                           "what a team would run for a call: the algorithm and why, the plan, "
                                           "its proof");
  plan.add_option("collective", question.collective, "allreduce, broadcast, alltoall and so on; a wrong one lists them")
      .required();
  plan.add_option("--ranks", question.ranks, "number of ranks (default: as the topology says, else 4)");
  plan.add_option("--bytes", question.bytes, "vector length with K, M or G; of all blocks together (default: 1M)");
  plan.add_option("--type", question.type, "element type (default: f32)");
  plan.add_option("--leaves", question.leaves,
                  "a sum over leaves: their number, or those of each rank, such as 3,0,4 (see bits)");
  plan.add_option("--root", question.root, "root of broadcast and reduce (default: 0)");
  plan.add_option("--rank", question.rank, "print the plan of this rank (default: all up to 16, else rank 0)");
  for (const SettingFlag& setting : kPlanSettings) add_setting(plan, setting, question.overrides);
  add_setting(plan, kTuneFile, question.overrides);
  plan.add_flag("--several-nodes", question.several_nodes,
                "each rank is on a node of its own: without a --topology, on a switch, over sockets");
  plan.add_flag("--verify", question.verify, "prove the plans of more than 64 ranks too, which may take long");
  plan.add_option("--svg", svg, "draw the plans of all ranks (at most 256) to this file, - for stdout");
  plan.set_examples("torii-info plan allreduce --topology torus:3x3x3 --algorithm trinaryx3 --svg plan.svg");
  return plan;
}

/// The files that `measure` writes; "" for none.
struct MeasureFiles {
  std::string tree, tune;
};

CommandLine add_measure(const CommandLine& app, MeasureFiles& files) {
  const CommandLine measured =
      app.add_command("measure",
                      "on all ranks of a job: latencies and bandwidths between them, as a tree "
                      "topology file and a tune file");
  measured.add_option("--tree", files.tree, "write the tree of links to this file");
  measured.add_option("--tune", files.tune,
                      "write what streams between sites carry to this file, behind the rows of TORII_TUNE_FILE or the "
                      "built-in ones");
  measured.set_examples(
      "torii-info measure --tree net.tree --tune net.json\n"
      "Start it as any program of the job: torii-run -n 4 -- torii-info measure ...");
  return measured;
}

CommandLine add_tune(const CommandLine& app, TuneRequest& request) {
  const CommandLine tune = app.add_command("tune",
                                           "print the tune table, check how far it is from the best on this machine "
                                           "(--check), or make one for this machine (-o)");
  tune.add_flag("--check", request.check,
                "print the time of what auto selects over that of the best forced algorithm, for every cell; exit "
                "code 1 if the median is above 1.03 or the worst above 1.15");
  tune.add_option("-o,--output", request.output,
                  "search for faster rows, compare them with the built-in table, and write a tune file, - for stdout");
  tune.add_option(kTuneFile.flag, request.tune_file, "table to print or to check instead of the one in force");
  tune.add_option("--minutes", request.minutes, "time for all; cells that do not fit are left out (exit code 4)")
      .range(0.001, 10000.0)
      .show_default();
  tune.add_option("--ranks", request.ranks, "list of numbers of ranks (default: 2, 4, 8 ... up to the CPUs)");
  tune.add_flag("--oversubscribe", request.oversubscribe, "allow more ranks than CPUs");
  tune.add_option("--collectives", request.collectives, "list of collectives").show_default();
  tune.add_option("--algorithms", request.algorithms, "list of algorithms (default: all)");
  tune.add_option("-b", request.least, "least size, with K, M or G (1024)").show_default();
  tune.add_option("-e", request.most, "greatest size").show_default();
  tune.add_option("-f", request.factor, "factor from one size to the next").range(2, 1 << 20).show_default();
  tune.add_option("--passes", request.passes, "passes of --check over all cells; regret is the median (default: 3)")
      .range(1, 99);
  tune.add_option("--rounds", request.rounds, "rounds in which candidates of a cell take turns, at most")
      .range(1, 1000)
      .show_default();
  tune.add_option("--block-ms", request.block_ms, "time of one candidate in a round").range(0.01, 1e4).show_default();
  tune.add_option("--raw", request.raw, "write every figure as JSON lines to this file");
  tune.set_examples(
      "torii-info tune --minutes 5 -o tune.json\n  TORII_TUNE_FILE=tune.json torii-info tune --check\n"
      "Exit codes: 0 done, 1 --check found regret above a limit, 2 bad command line or file, 3 not possible here, 4 "
      "time was\nover: what was measured is printed and written");
  return tune;
}

/// The table, or what was measured. Flags about measuring mean nothing to the table.
Report tune(const CommandLine& command, TuneRequest& request) {
  if (request.check || !request.output.empty()) return measure_tune(request);
  for (const std::string& option : command.given()) {
    if (option == kTuneFile.flag) continue;
    throw Error(Status::invalid_argument, option + " is for --check and -o FILE; torii-info tune --help");
  }
  return print_table(request.tune_file.empty() ? "" : std::string(kTuneFile.setting) + "=" + request.tune_file + "\n");
}

CommandLine add_phases(const CommandLine& app, PhasesQuestion& moved) {
  const CommandLine least =
      app.add_command("phases", "how few phases of communication a redistribution of items can take");
  least.add_option("--ranks", moved.ranks, "number of ranks (default: 4)");
  least.add_option("--of", moved.of,
                   "alltoall, transpose:ROWSxCOLUMNS, rotate:ITEMS+SHIFT, shuffle:ITEMS+SEED (default: alltoall)");
  least.set_examples("torii-info phases --ranks 100 --of transpose:1000x60");
  return least;
}

CommandLine add_bits(const CommandLine& app, BitsQuestion& question) {
  const CommandLine bits =
      app.add_command("bits",
                      "the expression of a sum over leaves, which is the same at any number of ranks, "
                      "and which rank computes which part");
  bits.add_option("--leaves", question.leaves,
                  "their number, dealt evenly in order, or the number of each rank's leaves, such as 3,0,4");
  bits.add_option("--ranks", question.ranks, "number of ranks (default: as --leaves lists, else 4)");
  bits.set_examples("torii-info bits --leaves 3,3");
  return bits;
}

CommandLine add_constants(const CommandLine& app) {
  const CommandLine constants = app.add_command(
      "constants", "the numbers in the code that decide how fast torii is and how it waits, and where each comes from");
  constants.set_examples("torii-info constants");
  return constants;
}

CommandLine add_costs(const CommandLine& app) {
  const CommandLine costs = app.add_command(
      "costs", "runs the program behind --, and sums what its calls cost that were not like those before");
  costs.set_examples("torii-info costs -- torii-run -n 4 -- all_reduce_perf -b 8 -e 1M");
  return costs;
}

/// The program and its arguments behind "--" of `costs`, which are not for this program: argc is then what stands
/// before.
std::vector<std::string> take_program(int& argc, char** argv) {
  char** const end = argv + argc;
  char** const dashes = std::find(argv, end, std::string_view("--"));
  if (std::find(argv, dashes, std::string_view("costs")) == dashes || dashes == end) return {};
  argc = static_cast<int>(dashes - argv);
  return {dashes + 1, end};
}

int run(int argc, char** argv) {
  const CommandLine app(
      "Says what this build of torii and this machine can do. Without a command: version, transports, kernels,\n"
      "CPUs and settings.",
      "torii-info");
  app.set_version(std::string("torii-info ") + torii_version());
  app.set_examples("torii-info --json -");
  std::string json;
  std::string svg;
  PlanQuestion question;
  TuneRequest tuning;
  int doctor_ranks = 0;
  app.add_option("--json", json, "write the same as one line of JSON to this file, - for stdout (any command)");
  app.require_commands(0, 1);
  app.share_flags();
  const CommandLine planned = add_plan(app, question, svg);
  const CommandLine tuned = add_tune(app, tuning);
  const CommandLine check = app.add_command("doctor", "what this machine and container allow, and how to lift a limit");
  check.add_option("--ranks", doctor_ranks, "ranks of the job (default: one per CPU that may be used)").range(1, 65536);
  check.set_examples("torii-info doctor --ranks 8");
  MeasureFiles files;
  const CommandLine measured = add_measure(app, files);
  PhasesQuestion moved;
  const CommandLine least = add_phases(app, moved);
  BitsQuestion summed;
  const CommandLine bits_of = add_bits(app, summed);
  const CommandLine numbers = add_constants(app);
  const CommandLine run_to_its_end = add_costs(app);
  const std::vector<std::string> program = take_program(argc, argv);
  if (const auto code = parse(app, argc, argv)) return *code;

  question.svg = !svg.empty();
  Report report;
  if (planned.is_called()) {
    report = report_plan(answer(question));
  } else if (tuned.is_called()) {
    tuning.json = json;
    for (int i = 0; i < argc; ++i) tuning.command += (i == 0 ? "torii-info" : " " + std::string(argv[i]));
    report = tune(tuned, tuning);
  } else if (check.is_called()) {
    report = doctor(doctor_ranks);
  } else if (measured.is_called()) {
    report = measure(files.tree, files.tune);
  } else if (least.is_called()) {
    report = phases(moved);
  } else if (bits_of.is_called()) {
    report = bits(summed);
  } else if (numbers.is_called()) {
    report = constants();
  } else if (run_to_its_end.is_called()) {
    const Output early(json, Output::Mode::append);  // what cannot be written is refused before the program runs
    report = costs(program);
  } else {
    report = overview();
  }
  if (report.json.is_null()) return report.code;  // rank 0 prints it, or the run was interrupted
  publish(report, json, svg);
  return report.code;
}

}  // namespace
}  // namespace torii::tools

int main(int argc, char** argv) {
  return torii::tools::run_program("torii-info", [&] { return torii::tools::run(argc, argv); });
}
