// SPDX-License-Identifier: Apache-2.0
// The ranks of a job, one per node of the laboratory, started and ended together.
#pragma once

#include <string>
#include <vector>

#include "tools/torii-lab/laboratory.hpp"

namespace torii::tools {

struct LabJobOptions {
  double timeout_s = 0;              ///< 0: none
  bool open_mpi = false;             ///< Open MPI's mpirun starts the ranks
  std::string own_program;           ///< path of torii-lab, which mpirun starts on every node
  std::vector<std::string> command;  ///< program and arguments
};

/// Runs the job to its end and returns the exit code: 0, the first failing rank's code or 128 + signal, 2 if the
/// program cannot be started, 3 if there is no mpirun, 4 after the timeout. Ranks get RANK, WORLD_SIZE, MASTER_ADDR,
/// MASTER_PORT, a random TORII_JOB_TOKEN, TORII_INTERFACE, and TORII_TOPOLOGY unless it is set already. With Open MPI
/// they get what mpirun sets.
int run_lab_job(const Laboratory& laboratory, const LabJobOptions& options);

}  // namespace torii::tools
