// SPDX-License-Identifier: Apache-2.0
// torii-lab: a network of rate-limited links on one machine, with one rank of a program on each node.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/numbers.hpp"
#include "runtime/base/output.hpp"
#include "runtime/base/status.hpp"
#include "tools/command_line.hpp"
#include "tools/exit_codes.hpp"
#include "tools/rank_job.hpp"
#include "tools/torii-lab/cage.hpp"
#include "tools/torii-lab/job.hpp"
#include "tools/torii-lab/laboratory.hpp"
#include "tools/torii-lab/report.hpp"
#include "tools/torii-lab/switched.hpp"

namespace torii::tools {
namespace {

struct Options {
  std::string kind;
  std::string size;
  double rate_mbit = 50;
  SitesOptions sites;
  std::vector<std::string> links;
  std::string json;
  std::string svg;
  std::string plan;
  LabJobOptions job;
};

LabNetwork network_of(const Options& options) {
  constexpr int kRailsMost = 16;
  LabNetwork network;
  if (options.kind == "rails") {
    const int rails = parse_number<int>(options.size).value_or(0);
    if (rails < 1 || rails > kRailsMost) {
      throw Error(Status::invalid_argument,
                  "rails '" + options.size + "': the number of rails must be from 1 to " + std::to_string(kRailsMost));
    }
    network = rails_network(rails, options.rate_mbit);
  } else if (options.kind == "sites") {
    network = sites_network(options.size, options.sites);
  } else if (options.kind == "tree") {
    network = tree_network(options.size);
  } else {
    network = torus_network(options.kind, options.size, options.rate_mbit);
  }
  for (const std::string& one : options.links) set_rate(network, one);
  return network;
}

int run_inside(const Options& options, const LabNetwork& network, const std::optional<LabPrediction>& prediction) {
  try {
    const Laboratory laboratory(network);
    LabReport report;
    report.network = &network;
    report.prediction = prediction;
    report.command = options.job.command;
    const auto before = laboratory.counts();
    const auto start = std::chrono::steady_clock::now();
    report.exit_code = run_lab_job(laboratory, options.job);
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.loads = loads_between(before, laboratory.counts());
    Output(options.json).write(report_json(report));
    Output(options.svg).write(report_svg(report));
    // The files have the comparison; without them it is printed.
    if (prediction && options.json.empty() && options.svg.empty()) Output("-").write(report_plan(report));
    return report.exit_code;
  } catch (const Error& error) {
    std::fprintf(stderr, "torii-lab: %s\n", error.what());
    return error.status() == Status::invalid_argument ? kBadInput : kNotPossible;
  }
}

/// What mpirun calls instead of ssh: `torii-lab enter HOST words of a shell command`.
int enter_and_run(int count, char** words) {
  std::string command;
  for (int i = 1; i < count; ++i) command += std::string(i > 1 ? " " : "") + words[i];
  if (count < 2) {
    std::fprintf(stderr, "torii-lab: enter needs a host and a command: torii-lab enter HOST COMMAND\n");
    return kBadInput;
  }
  if (enter_by_name(words[0])) execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  std::fprintf(stderr, "torii-lab: cannot enter %s: %s\n", words[0], std::strerror(errno));
  return kNotPossible;
}

void add_job_options(const CommandLine& app, Options& options) {
  app.add_option("--timeout", options.job.timeout_s, "end the job after this many seconds, with code 4")
      .range(0.001, 1e9);
  app.add_option("--json", options.json, "write the load of every link to this file; - for stdout");
  app.add_option("--svg", options.svg, "draw the loads into this file; - for stdout");
  app.add_option("--plan", options.plan,
                 "torus and mesh: compare the loads with this plan, COLLECTIVE:ALGORITHM:BYTES as in "
                 "allreduce:bucket:4M; a table on stdout unless --json or --svg has it");
  app.add_flag("--open-mpi", options.job.open_mpi, "let Open MPI's mpirun start the program, which is an MPI program");
}

/// The path of torii-lab. Call this outside the cage: inside, the link shows a path from outside a chroot.
std::string own_program() {
  std::error_code error;
  const std::string path = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) std::fprintf(stderr, "torii-lab: cannot find its own path: %s\n", error.message().c_str());
  return path;
}

void add_options(const CommandLine& app, Options& options) {
  app.add_option("network", options.kind, "torus, mesh, rails, sites or tree")
      .required()
      .one_of({"torus", "mesh", "rails", "sites", "tree"});
  app.add_option("size", options.size,
                 "extents such as 3x3 or 4x4x2m, the number of rails, the hosts of each site such as 8+8, or a tree "
                 "topology file, which has the rates")
      .required();
  app.add_option("--rate", options.rate_mbit,
                 "of each link in each direction, in 10^6 bits per second; of a site's hosts 1000 unless given")
      .range(kRateLeastMbit, kRateMostMbit)
      .show_default();
  constexpr double kDelayMostMs = 1000;
  app.add_option("--delay", options.sites.delay_ms, "sites: ms from one to another, one way")
      .range(0.0, kDelayMostMs)
      .show_default();
  app.add_option("--capacity", options.sites.capacity_mbit,
                 "sites: of each long line in each direction, in 10^6 bits per second")
      .range(kRateLeastMbit, kRateMostMbit)
      .show_default();
  app.add_option("--window", options.sites.window_bytes,
                 "sites: TCP's receive window in bytes, as in 64K; the system's unless given")
      .bytes();
  app.add_option("--link", options.links, "another rate for one directed link: NODE:DEVICE=MBIT; may be repeated")
      .repeated();
  add_job_options(app, options);
  app.take_program();
}

/// Checks that the options fit together, and reads the program's command line. Throws Error{invalid_argument}.
void read_rest(const CommandLine& app, Options& options) {
  const auto refuse = [](const std::string& why) { throw Error(Status::invalid_argument, why); };
  if (app.count("--rate") > 0) options.sites.rate_mbit = options.rate_mbit;
  for (const std::string only : {"--delay", "--capacity", "--window"}) {
    if (app.count(only) > 0 && options.kind != "sites") {
      refuse(only + " is for sites; " + options.kind + " has no long lines");
    }
  }
  if (app.count("--rate") > 0 && options.kind == "tree") {
    refuse("--rate is not for tree: the rates are in " + options.size);
  }
  std::vector<std::string>& command = options.job.command;
  command = app.remaining();
  if (!command.empty() && command[0] != "--")
    refuse("'" + command[0] + "' is not understood; write -- before the program");
  if (!command.empty()) command.erase(command.begin());
  if (command.empty() || command[0].empty()) refuse("no program to start; run torii-lab --help");
}

int run_laboratory(int argc, char** argv) {
  keep_standard_streams();
  if (argc > 1 && std::string_view(argv[1]) == "enter") return enter_and_run(argc - 2, argv + 2);
  const CommandLine app(
      "torii-lab torus|mesh XxYxZ [options] -- program [args]\n"
      "torii-lab rails K [options] -- program [args]\n"
      "torii-lab sites 8+8 [options] -- program [args]\n"
      "torii-lab tree FILE [options] -- program [args]\n"
      "Makes a network of rate-limited links between namespaces of this machine, runs one rank of the program on each\n"
      "node, and counts what every link carries. Needs root. Nothing of it is left afterwards.",
      "torii-lab");
  app.set_version("torii-lab " TORII_VERSION);
  app.set_examples("torii-lab torus 3x3 --rate 50 --svg loads.svg -- all_reduce_perf -b 4M -e 4M");
  Options options;
  add_options(app, options);
  if (const auto code = parse(app, argc, argv)) return *code;
  LabNetwork network;
  std::optional<LabPrediction> prediction;
  try {
    read_rest(app, options);
    network = network_of(options);
    if (!options.plan.empty()) prediction = predict(network, options.plan);
  } catch (const Error& error) {
    std::fprintf(stderr, "torii-lab: %s\n", error.what());
    return kBadInput;
  }
  if (const std::string reason = why_no_laboratory(); !reason.empty()) {
    std::fprintf(stderr, "torii-lab: not possible here: %s\n", reason.c_str());
    return kNotPossible;
  }
  options.job.own_program = own_program();
  return run_in_cage([&] { return run_inside(options, network, prediction); });
}

}  // namespace
}  // namespace torii::tools

int main(int argc, char** argv) { return torii::tools::run_laboratory(argc, argv); }
