// SPDX-License-Identifier: Apache-2.0
// Runs one history: its ranks as fibers of this thread, on virtual time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/torii-sim/faults/event_log.hpp"
#include "tools/torii-sim/faults/history.hpp"
#include "transports/fibers/fibers.hpp"

namespace torii::faults {

/// Sums over histories.
struct Counts {
  std::uint64_t histories = 0;
  std::uint64_t calls = 0;  ///< that returned ok
  std::uint64_t failed_calls = 0;
  std::uint64_t refused_calls = 0;  ///< that a forced algorithm cannot run
  std::uint64_t survivors = 0;
  std::uint64_t memory_refusals = 0;
  std::uint64_t points = 0;
  std::uint64_t turns = 0;
  std::uint64_t messages = 0;
  std::uint64_t virtual_ns = 0;
};
struct NamedCount {
  const char* name;
  std::uint64_t Counts::*count;
};
/// All of them, for those that write, read or add them.
inline constexpr NamedCount kCounts[] = {{"histories", &Counts::histories},
                                         {"calls", &Counts::calls},
                                         {"failed_calls", &Counts::failed_calls},
                                         {"refused_calls", &Counts::refused_calls},
                                         {"survivors", &Counts::survivors},
                                         {"memory_refusals", &Counts::memory_refusals},
                                         {"points", &Counts::points},
                                         {"turns", &Counts::turns},
                                         {"messages", &Counts::messages},
                                         {"virtual_ns", &Counts::virtual_ns}};

struct Verdict {
  std::vector<std::string> failures;  ///< sentences; empty: all went as it should
  std::uint64_t digest = 0;           ///< of all turns: equal for equal histories
  Counts counts;
  std::vector<std::string> deaths;  ///< what dead ranks were doing
};

/// Not thread-safe: the platform of the whole process is the history's meanwhile. Memory of ranks that die is leaked.
/// Writes what happens into `log`, if there is one.
Verdict run(const History& history, const fibers::Fibers::Note& note = nullptr, EventLog* log = nullptr);

}  // namespace torii::faults
