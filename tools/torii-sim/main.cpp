// SPDX-License-Identifier: Apache-2.0
// torii-sim: the time of a collective on a torus of thousands of nodes, by running its plans on virtual time.
#include <torii/torii.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/plan/operation.hpp"
#include "tools/command_line.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-sim/alltoall.hpp"
#include "tools/torii-sim/calls.hpp"
#include "tools/torii-sim/faults/command.hpp"
#include "tools/torii-sim/options.hpp"
#include "tools/torii-sim/rows.hpp"
#include "tools/torii-sim/tree_broadcast.hpp"

namespace torii::tools {
namespace {

void add_options(const CommandLine& app, SimOptions& o) {
  app.add_option("--topology", o.topology,
                 "torus:4x4x4, mesh:8x8, torus:4x4x2m, torus:4x4,ties, tree:FILE, node: one switch, or "
                 "hwloc:DESCRIPTION: a rank on each core, as in \"hwloc:pack:2 l3:12 core:8\"")
      .required();
  app.add_option("--ranks", o.ranks, "ranks of --topology node");
  app.add_option("--algorithm", o.algorithm, "of the catalogue, several with commas (default: auto)");
  app.add_option("--bytes", o.bytes, "vector length with K, M or G; of all blocks together (default: 1M)");
  app.add_option(
      "--segment", o.segment,
      "largest payload of one put; auto: the best of a few (default); table: segment, slots and window that a team "
      "takes");
  app.add_option("--type", o.type, "element type (default: f32)");
  app.add_option("--op", o.op, "operation (default: sum)");
  app.add_option("--leaves", o.leaves, "a sum over so many leaves, or a list: those of each rank (no folding time)");
  app.add_option("--root", o.root, "root of broadcast and reduce (default: 0)");
  app.add_option("--engines", o.engines, "puts of one rank at the same time, 1 to 16 (default: 4)");
  app.add_option("--engine-rates", o.engine_rates,
                 "puts go by the engines that the runtime chooses; each engine's rate in link bandwidths, with commas, "
                 "as 1,1,1,0.1 (default: a free engine takes the next put)")
      .delimiter(',');
  app.add_option("--slots", o.slots, "slots of every stream, up to 64 (default: 16 or 64, as the network needs)");
  app.add_option("--window", o.window, "segments of one lane in flight (default: 4)");
  app.add_option("--sharing", o.sharing,
                 "how messages share a link: min, maxmin, packet (default; broadcast on a tree: reserved, the model of "
                 "schedules)");
  app.add_option("--alpha", o.alpha_us, "us from an engine's start to the signal, beside the bytes (default: 1.5)");
  app.add_option("--overhead", o.overhead_us, "us that an engine takes per put beside the bytes (default: 0.2)");
  app.add_option("--bandwidth", o.bandwidth_GBps, "GB/s of one directed link (default: 5)");
  app.add_flag("--ports", o.ports, "a node sends over one link at a time, and receives over one");
  app.add_off_flag("--no-overlap", o.overlap, "nothing goes down a tree before all has gone up");
  app.add_option("--reduce", o.reduce_GBps, "GB/s of operands that one rank folds (default: folding takes no time)");
  app.add_option("--skew", o.skew_us, "us within which ranks start (default: 0)");
  app.add_option("--jitter", o.jitter_us, "us that a put may take longer (default: 0)");
  app.add_option("--seed", o.seed, "of skew and jitter (default: 1)");
  app.add_option("--budget", o.budget_s, "seconds that a search may take");
  app.add_flag("--data", o.data, "fold real vectors and compare the results of all ranks");
  app.add_flag("--common-root", o.common_root,
               "trinaryx3: the trees of an allreduce hang from rank 0, as in its paper");
  app.add_option("--radix", o.radix, "floyd: base of the digits by which blocks travel (default: its model's)")
      .range(2, 65536);
  app.add_flag("--every-segment", o.every_segment, "run long pipelines to the end instead of extending a steady state");
  app.add_option("--scan", o.scan,
                 "go through shapes=2..12x2..12, ranks=2..64, engines=1..8 or bytes=1K..1M (each four times the one "
                 "before; 1K..1M*2: twice); numbers also as 2..9,16,32; may be given several times");
  app.add_flag("--cliffs", o.cliffs,
               "judge the scan: twice the bytes take 1 to 2.2 times as long, and on a node one rank more changes time "
               "over bound by at most 1.5; exit code 1 where that is not so");
  app.add_option("--figure", o.figure,
                 "SVG to this file: bandwidth by size and algorithm; with --split, where the time goes; of an alltoall "
                 "by min or maxmin, time over 1 to 8 controllers");
  app.add_option("--cost", o.cost,
                 "SVG to this file: seconds of the processor and memory of the simulations of a scan, smallest first, "
                 "by ranks");
  app.add_option("--split", o.split,
                 "GB/s of folding, several with commas: a reduce, a broadcast and an allreduce, split into "
                 "communication, overlap and folding")
      .delimiter(',');
}

void add_outputs(const CommandLine& app, SimOptions& o) {
  app.add_option("--svg-links", o.svg_links, "draw what each link carried to this file, - for stdout");
  app.add_option("--svg-time-line", o.svg_time_line, "draw what the engines of --watched did to this file");
  app.add_option("--watched", o.watched, "rank whose engines are drawn (default: 0)");
  app.add_option("--json", o.json, "one object per line to this file, - for stdout");
  app.add_option("--csv", o.csv, "rows to this file, - for stdout");
}

/// A command of the command line, and the function that runs it.
struct Command {
  CommandLine line;
  std::function<int(RowWriter&)> run;
};

int run_one(const SimOptions& options, RowWriter& rows) {
  const bool is_planned = options.sharing == "auto" || options.sharing == "reserved";
  if (options.topology.starts_with("tree:") && options.collective == "broadcast" && is_planned) {
    return run_tree_broadcast(options, rows);
  }
  return run_calls(options, rows);
}

int run(int argc, char** argv) {
  const CommandLine app(
      "Runs the plans of a collective on virtual time: as many ranks as the topology has, in one process.",
      "torii-sim");
  app.set_version(std::string("torii-sim ") + torii_version());
  app.set_examples("torii-sim allreduce --algorithm trinaryx3 --topology torus:8x8x8 --bytes 32M");
  app.require_commands(1, 1);
  SimOptions options;
  std::vector<Command> commands;
  for (int i = 0; i < kCollectiveCount; ++i) {
    const std::string collective(name(static_cast<Collective>(i)));
    if (collective == "alltoall") continue;  // has its own command
    const CommandLine command = app.add_command(collective, "simulate " + collective);
    add_options(command, options);
    add_outputs(command, options);
    commands.push_back({command, [&options](RowWriter& rows) { return run_one(options, rows); }});
  }
  const CommandLine alltoall = app.add_command("alltoall", "simulate orders of sends");
  add_options(alltoall, options);
  add_outputs(alltoall, options);
  commands.push_back({alltoall, add_alltoall(alltoall, options)});
  const CommandLine faults = app.add_command("faults", "run histories of teams under faults, on virtual time");
  const std::function<int()> run_faults = add_faults(faults);
  if (const auto code = parse(app, argc, argv)) return *code;
  if (faults.is_called()) return run_faults();
  for (const Command& command : commands) {
    if (!command.line.is_called()) continue;
    options.collective = command.line.name();
    check(options);
    RowWriter rows(options.json, options.csv);
    return command.run(rows);
  }
  return kBadInput;
}

}  // namespace
}  // namespace torii::tools

int main(int argc, char** argv) {
  return torii::tools::run_program("torii-sim", [&] { return torii::tools::run(argc, argv); });
}
