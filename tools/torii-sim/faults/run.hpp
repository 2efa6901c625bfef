// SPDX-License-Identifier: Apache-2.0
// Many histories, in processes of their own; and the smallest part of a history that still fails.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/torii-sim/faults/case.hpp"
#include "tools/torii-sim/faults/history.hpp"

namespace torii::faults {

/// The failures of one history, in sentences.
struct Failure {
  std::uint64_t seed = 0;
  std::string text;
};

/// Sums over the histories that ended.
struct Tally {
  Counts counts;
  std::map<std::string, std::uint64_t> faults;  ///< by kind
  std::map<std::string, std::uint64_t> deaths;  ///< by what the rank was doing
  std::vector<Failure> failures;                ///< by seed
};

struct Run {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  int processes = 2;
  /// Ends early after so many failures.
  std::size_t failures_most = 10;
};

/// Runs the histories of all seeds. A process that crashes, or takes more than 20 s of CPU time for one history, is a
/// failure of that history. `progress` is called now and then.
Tally run(const Run& all, const std::function<void(const Tally&)>& progress);

/// One history in a process of its own.
struct Replay {
  std::string failure;       ///< sentences; empty: it does not fail
  std::uint64_t digest = 0;  ///< Verdict::digest; 0 after a crash
};
Replay replay(const History& history);

/// Leaves out what is named: "s3" step 3, "f0" fault 0, with commas. Throws Error{invalid_argument}.
void leave_out(History& history, const std::string& names);

/// Leaves out all but what the failure needs. Returns the names of what is left out, as leave_out() takes them.
std::string shorten(const History& history);

}  // namespace torii::faults
