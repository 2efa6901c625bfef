// SPDX-License-Identifier: Apache-2.0
// Reads the variables of launchers, and selects the way to join or reports what is missing.
#include "runtime/bootstrap/environment.hpp"

#include <cstdlib>
#include <string>

#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"
#include "runtime/bootstrap/job_socket.hpp"
#include "runtime/bootstrap/pmix.hpp"
#include "runtime/bootstrap/rendezvous_file.hpp"
#include "runtime/bootstrap/tcp.hpp"

namespace torii {
namespace {

/// The variables in which a launcher gives a process its rank and the number of ranks.
struct Launcher {
  const char* rank;
  const char* ranks;
  bool needs_rank;  ///< `ranks` may be set in a process that is no rank
  const char* name;
};
constexpr Launcher kLaunchers[] = {{"RANK", "WORLD_SIZE", false, "RANK, WORLD_SIZE, MASTER_ADDR (torchrun)"},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", false, "Open MPI's mpirun"},
                                   {"PMI_RANK", "PMI_SIZE", false, "PMI (mpiexec of MPICH)"},
                                   {"SLURM_PROCID", "SLURM_NTASKS", true, "srun"}};

/// The job according to the environment.
struct Job {
  const Launcher* launcher = nullptr;  ///< the first whose variables say that there are several ranks, or nullptr
  int ranks = 1;
  bool ranks_known = false;  ///< some launcher says how many there are
};

Job find_job() {
  Job job;
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.needs_rank && std::getenv(launcher.rank) == nullptr) continue;
    const std::optional<int> ranks = number_in(launcher.ranks);
    job.ranks_known = job.ranks_known || ranks.has_value();
    if (ranks.value_or(1) <= 1 || job.launcher != nullptr) continue;
    job.launcher = &launcher;
    job.ranks = *ranks;
  }
  return job;
}

int rank_in(const Job& job) {
  const std::string said = std::string(job.launcher->ranks) + "=" + std::to_string(job.ranks);
  const std::optional<int> rank = number_in(job.launcher->rank);
  if (!rank) {
    throw Error(Status::invalid_argument, said + " speaks of several ranks, but " + job.launcher->rank + " is not set");
  }
  if (*rank < 0 || *rank >= job.ranks) {
    throw Error(Status::invalid_argument, std::string(job.launcher->rank) + " is " + std::to_string(*rank) + "; with " +
                                              said + " it must be from 0 to " + std::to_string(job.ranks - 1));
  }
  return *rank;
}

int rendezvous_port(const Settings& settings) {
  const std::optional<int> port = number_in("MASTER_PORT");
  if (port && (*port < 1 || *port > 65535)) {
    throw Error(Status::invalid_argument,
                "MASTER_PORT is " + std::to_string(*port) + "; it must be a port from 1 to 65535");
  }
  if (port) return *port;
  if (settings.port_low != 0) return settings.port_low;
  throw Error(Status::invalid_argument,
              "MASTER_ADDR is set and MASTER_PORT is not: set it to a free port of that host, the same on all ranks");
}

std::unique_ptr<Bootstrap> join_file_of(const Settings& settings, int rank, int ranks) {
  return join_file(settings, rank, ranks, settings.rendezvous.substr(sizeof("file:") - 1));
}

std::unique_ptr<Bootstrap> join_rendezvous(const Settings& settings, const Job& job) {
  if (job.launcher != nullptr) return join_file_of(settings, rank_in(job), job.ranks);
  if (job.ranks_known) return nullptr;  // a job of one rank needs no rendezvous
  throw Error(Status::invalid_argument, "TORII_RENDEZVOUS is " + settings.rendezvous +
                                            ", but nothing says which rank this is: set RANK and WORLD_SIZE");
}

[[noreturn]] void refuse(const std::string& seen, const std::string& name) {
  throw Error(Status::unsupported,
              seen + " says that " + name +
                  " started several ranks, but offers no exchange that torii can use; start the ranks with torii-run, "
                  "or set MASTER_ADDR and MASTER_PORT or TORII_RENDEZVOUS=file:PATH for them, or hand an exchange "
                  "function to the context (inside MPI: one that calls MPI_Allgather), or unset the variable for a "
                  "job of one rank");
}

}  // namespace

std::optional<int> number_in(const char* variable) {
  const char* const raw = std::getenv(variable);
  if (raw == nullptr) return std::nullopt;
  if (const auto value = parse_number<int>(raw)) return value;
  throw Error(Status::invalid_argument, std::string(variable) + " is '" + raw + "'; it must be a whole number");
}

std::string launched_job() {
  const std::optional<int> started = number_in(job_socket::kRanksVariable);
  if (started) return *started > 1 ? job_socket::kRanksVariable + ("=" + std::to_string(*started)) : "";
  const Job job = find_job();
  if (job.launcher != nullptr) return job.launcher->ranks + ("=" + std::to_string(job.ranks));
  const char* const pmix = std::getenv("PMIX_RANK");
  return job.ranks_known || pmix == nullptr ? "" : std::string("PMIX_RANK=") + pmix;
}

std::unique_ptr<Bootstrap> join_as(const Settings& settings, int rank, int ranks) {
  if (!settings.rendezvous.empty()) return join_file_of(settings, rank, ranks);
  if (const char* const master = std::getenv("MASTER_ADDR")) {
    return join_tcp(settings, rank, ranks, master, rendezvous_port(settings));
  }
  throw Error(Status::invalid_argument,
              "the options say rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                  ", but nothing says where the ranks meet: set RENDEZVOUS=file:PATH in the options' settings, or "
                  "MASTER_ADDR and MASTER_PORT, or hand over an exchange function");
}

std::unique_ptr<Bootstrap> join_environment(const Settings& settings) {
  const Job job = find_job();
  if (!settings.rendezvous.empty()) return join_rendezvous(settings, job);
  const char* const master = std::getenv("MASTER_ADDR");
  const bool has_pmix = std::getenv("PMIX_RANK") != nullptr && std::getenv("PMIX_NAMESPACE") != nullptr;
  const bool several = job.launcher != nullptr;
  // RANK and WORLD_SIZE of the user count even inside another launcher. Otherwise a launcher's PMIx server is
  // preferred.
  const bool is_torchrun = job.launcher == &kLaunchers[0];
  if (several && master != nullptr && (is_torchrun || !has_pmix)) {
    return join_tcp(settings, rank_in(job), job.ranks, master, rendezvous_port(settings));
  }
  if (has_pmix && (several || !job.ranks_known)) return join_pmix(settings);
  if (several) {
    refuse(std::string(job.launcher->ranks) + "=" + std::to_string(job.ranks), job.launcher->name);
  }
  // PMIX_RANK does not give the number of ranks, so several must be assumed.
  if (!job.ranks_known && std::getenv("PMIX_RANK") != nullptr) refuse("PMIX_RANK", "a PMIx launcher");
  return nullptr;
}

}  // namespace torii
