// SPDX-License-Identifier: Apache-2.0
// The ranks of the laboratory. Processes that they leave running end with the laboratory's namespace.
#include "tools/torii-lab/job.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "runtime/bootstrap/job_socket.hpp"
#include "runtime/bootstrap/wire.hpp"
#include "tools/exit_codes.hpp"
#include "tools/rank_job.hpp"

namespace torii::tools {
namespace {

using Words = std::vector<std::string>;
constexpr const char* kRendezvousPort = "29500";
constexpr const char* kMpirun = "mpirun.openmpi";
/// In the laboratory's own /run/netns, so that files of Open MPI disappear too.
constexpr const char* kMpiFolder = "/run/netns/.ompi";

/// Devices of a node that have addresses, separated by commas.
std::string addressed_devices(const LabNode& node) {
  std::string names;
  for (const LabDevice& one : node.devices) {
    if (!one.address.empty()) names += (names.empty() ? "" : ",") + one.name;
  }
  return names.empty() ? std::string(kNodeDevice) : names;
}

/// mpirun on node 0, which reaches the others by `torii-lab enter` instead of ssh.
Words mpirun_command(const LabNetwork& network, const LabJobOptions& options) {
  const std::string devices = addressed_devices(network.nodes[0]);
  std::string hosts;
  for (int rank = 0; rank < network.ranks; ++rank) {
    hosts += (hosts.empty() ? "" : ",") + network.nodes[static_cast<std::size_t>(rank)].host + ":1";
  }
  mkdir(kMpiFolder, 0700);
  Words words{kMpirun, "--allow-run-as-root",        "--bind-to", "none", "--host", hosts,
              "-n",    std::to_string(network.ranks)};
  const std::pair<const char*, std::string> parameters[] = {{"plm", "rsh"},
                                                            {"plm_rsh_agent", options.own_program + " enter"},
                                                            {"orte_tmpdir_base", kMpiFolder},
                                                            {"oob_tcp_if_include", devices},
                                                            {"btl", "tcp,self"},
                                                            {"btl_tcp_if_include", devices}};
  for (const auto& [name, value] : parameters) words.insert(words.end(), {"--mca", name, value});
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

RankJobRules rules_of(const LabNetwork& network, const LabJobOptions& options) {
  if (options.open_mpi) {
    return {.speaker = "torii-lab",
            .command = mpirun_command(network, options),
            .timeout_s = options.timeout_s,
            .no_program_code = kNotPossible};
  }
  return {
      .speaker = "torii-lab", .command = options.command, .processes = network.ranks, .timeout_s = options.timeout_s};
}

class LabJob : public RankJob {
 public:
  LabJob(const Laboratory& laboratory, const LabJobOptions& options)
      : RankJob(rules_of(laboratory.network(), options)),
        laboratory_(laboratory),
        open_mpi_(options.open_mpi),
        token_(wire::hex(wire::random_nonce())) {}

 private:
  bool prepare(int) override { return true; }
  bool become(int rank) override {
    // The first process of the cage handles these signals, so they are blocked in the cage; ranks must not inherit
    // that.
    const sigset_t mask = job_signals();
    sigprocmask(SIG_UNBLOCK, &mask, nullptr);
    set_environment(rank);
    return laboratory_.enter(rank);
  }
  std::string name_of(int rank, pid_t) const override { return open_mpi_ ? "mpirun" : fmt::format("rank {}", rank); }
  void set_environment(int rank) const;

  const Laboratory& laboratory_;
  bool open_mpi_;
  std::string token_;
};

void LabJob::set_environment(int rank) const {
  const LabNetwork& network = laboratory_.network();
  setenv("TORII_INTERFACE", ("=" + addressed_devices(network.nodes[0])).c_str(), 1);
  if (!network.topology.empty()) setenv("TORII_TOPOLOGY", network.topology.c_str(), 0);
  if (open_mpi_) {
    // Open MPI sees one rank on each host and would spin; these hosts share the CPUs of one machine.
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    return;
  }
  // Inside a rank of torii-run these would make the new ranks join that job.
  for (const char* const name : {job_socket::kFdVariable, job_socket::kRankVariable, job_socket::kRanksVariable}) {
    unsetenv(name);
  }
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(network.ranks).c_str(), 1);
  setenv("MASTER_ADDR", network.nodes[0].addresses[0].c_str(), 1);
  setenv("MASTER_PORT", kRendezvousPort, 1);
  setenv("TORII_JOB_TOKEN", token_.c_str(), 1);
}

}  // namespace

int run_lab_job(const Laboratory& laboratory, const LabJobOptions& options) {
  return LabJob(laboratory, options).run();
}

}  // namespace torii::tools
