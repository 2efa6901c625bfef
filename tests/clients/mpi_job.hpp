// SPDX-License-Identifier: Apache-2.0
// Jobs of MPI under mpirun with coll/torii, and what the component's counters say.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace torii::tests {

using Words = std::vector<std::string>;

void add(Words& words, const Words& more);
/// The path of a file of tests/clients.
std::string source(const std::string& name);
/// The folder of the component that was built.
std::string components();

struct Job {
  int ranks = 2;
  Words options;  ///< of mpirun, for all ranks
  Words command;
  Words environment = {};
  bool with_torii = true;
  double deadline_s = 60;
  std::string delay = "0";  ///< calls of a group that are left; 0: torii makes its team at the first; "": the default
};

Outcome mpirun(const Job& job);

struct Range {
  long least, most;
  friend bool operator==(const Range&, const Range&) = default;
};

/// The counts of all ranks, by operation ("ibcast"), of what the component prints at its end. `what` is taken or left.
std::map<std::string, Range> ranges(const std::string& output, const std::string& what);
/// The least count of any rank.
std::map<std::string, long> counts(const std::string& output, const std::string& what);

/// The operations that torii runs in every form.
extern const Words kOperations;

}  // namespace torii::tests
