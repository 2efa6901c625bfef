// SPDX-License-Identifier: Apache-2.0
// The verdicts on the findings: one line per check, and the line that lifts a limit. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/torii-info/findings.hpp"

namespace torii::tools {

/// ok; limit: works, but slower, smaller or not everywhere; blocked: shared memory cannot work.
enum class State { ok, limit, blocked };

const char* name(State state);

struct Check {
  std::string name;
  State state = State::ok;
  std::string found;
  std::string lift;  ///< what to run or set; empty when ok
};

/// In the order in which they are printed.
std::vector<Check> judge(const Findings& found);

/// The parts of judge().
std::vector<Check> judge_memory(const Findings& found);
std::vector<Check> judge_processes(const Findings& found);
std::vector<Check> judge_network(const Findings& found);

}  // namespace torii::tools
