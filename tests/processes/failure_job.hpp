// SPDX-License-Identifier: Apache-2.0
// A job of failure_rank, and what its ranks said.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace torii::tests {

/// What a job of failure_rank said.
struct Report {
  Outcome outcome;
  double event_s = 0;              ///< when the chosen rank did what it does
  std::vector<std::string> ranks;  ///< those that reported a failure
  std::set<std::string> causes;    ///< "status: text", one if all agree
  double latest_s = 0;             ///< when the last of them did
  int survivors = 0;               ///< ranks for which the team of survivors worked

  double latency_ms() const { return (latest_s - event_s) * 1000; }
};

struct FailureJob {
  int ranks = 4;
  std::string mode;
  int rank = 0;
  int delay_us = 20'000;
  std::size_t count = 1000;
  std::vector<std::string> environment = {};
};

Report run_job(const FailureJob& job);
std::string cause_of(const Report& report);
/// Everyone who lives reported the same, and their new team worked.
void expect_one_cause(const Report& report, int survivors, const std::string& part);

}  // namespace torii::tests
