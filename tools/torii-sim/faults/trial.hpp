// SPDX-License-Identifier: Apache-2.0
// Runs one history: its ranks as fibers of this thread, on virtual time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/torii-sim/faults/history.hpp"
#include "transports/fibers/fibers.hpp"

namespace torii::faults {

struct Verdict {
  std::vector<std::string> failures;  ///< sentences; empty: all went as it should
  std::uint64_t digest = 0;           ///< of all turns: equal for equal histories
  std::uint64_t turns = 0;
  std::uint64_t points = 0;
  std::uint64_t messages = 0;
  std::uint64_t calls = 0;
  std::uint64_t failed_calls = 0;
  std::uint64_t survivors = 0;
  fibers::Time time = 0;
  std::vector<std::string> deaths;  ///< what dead ranks were doing
};

/// Not thread-safe: the platform of the whole process is the history's meanwhile. Memory of ranks that die is leaked.
Verdict run(const History& history, const fibers::Fibers::Note& note = nullptr);

}  // namespace torii::faults
