// SPDX-License-Identifier: Apache-2.0
// A job: N processes on this machine, started, served while they join, and ended together.
#pragma once

#include <string>
#include <vector>

namespace torii::tools {

struct JobOptions {
  std::string speaker = "torii-run";  ///< the program in whose name messages are printed
  int ranks = 1;
  double timeout_s = 0;              ///< 0: none
  bool continue_on_failure = false;  ///< ranks go on when one fails
  int replacements = 0;  ///< so many failed ranks are replaced by new processes; then a failure ends the job
  std::vector<std::string> command;  ///< program and arguments
};

/// Runs the job to its end and returns the exit code: 0, the first failing rank's code or 128 + signal, 2 if the
/// program cannot be started, 3 if this machine cannot hold the job, 4 after the timeout. No process of the job is
/// left.
int run_job(const JobOptions& options);

}  // namespace torii::tools
