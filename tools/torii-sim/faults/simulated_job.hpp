// SPDX-License-Identifier: Apache-2.0
// The common state of the ranks of one history, and the failures found.
#pragma once

#include <torii/torii.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/torii-sim/faults/departures.hpp"
#include "tools/torii-sim/faults/event_log.hpp"
#include "tools/torii-sim/faults/history.hpp"
#include "transports/fibers/fibers.hpp"

namespace torii::faults {

/// The outcome of a split on one rank.
enum class Part : std::uint8_t { not_asked_for, made, not_made };

/// How far a rank has come, as far as the others must know.
enum class Progress : std::uint8_t { plays, played, emptied };

/// The current and past activities of one rank.
struct RankState {
  Phase phase = Phase::joining;
  Progress progress = Progress::plays;
  std::array<int, kPhases> visits = {};  ///< how often it has come to each phase
  std::vector<Part> parts = {};          ///< by team
  int calls_begun = 0;                   ///< on all its teams
};

struct SimulatedJob {
  SimulatedJob(const History& played, fibers::Fibers& on, EventLog* writes);

  const History& history;
  fibers::Fibers& fibers;
  EventLog* log;  ///< nullptr: nobody reads it
  std::vector<std::string> failures = {};
  /// By team and its lowest rank: the first cause that a member reported. Splits count as teams of their own.
  std::map<std::pair<std::size_t, int>, std::string> causes = {};
  std::set<std::pair<std::size_t, int>> right_timeouts = {};  ///< teams, by their lowest rank
  std::uint64_t calls = 0;                                    ///< that returned ok
  std::uint64_t failed_calls = 0;
  std::uint64_t refused_calls = 0;     ///< that the forced algorithm cannot run
  std::uint64_t survivors = 0;         ///< teams of survivors that were made
  std::vector<std::size_t> left = {};  ///< by team: members that have left it, or its survivors, in peace
  struct SurvivorTeam {
    std::size_t team;   ///< of which it was made
    std::size_t depth;  ///< how many were made of it before
    int rank;           ///< that has it
    std::vector<int> members;
  };
  std::vector<SurvivorTeam> survivor_teams = {};
  bool has_left_out = false;          ///< survivors have left out a rank that lives: all its teams fail
  bool waits_in_vain = false;         ///< a rank has waited for a member that had left in peace
  bool has_abandoned = false;         ///< a redistribution has failed: its memory stays until the context ends
  bool is_difference_judged = false;  ///< the first cause of calls that differ has been looked at
  std::vector<RankState> ranks = {};
  Departures departures;

  RankState& state(int rank) { return ranks[static_cast<std::size_t>(rank)]; }
  void fail(int rank, const std::string& what);
  /// The rank that runs comes to a phase, and maybe to what happens to it there.
  void enter(int rank, Phase phase);
  /// True if the rank's team may have failed so by a timeout, although nothing went wrong with a member.
  bool is_timeout_right(std::size_t team, int rank, torii_status status);
  /// True if any rank was refused memory so far.
  bool has_refused_memory() const;
  /// All that live have a part, or none has.
  void check_parts();
  void check_one_team();
  /// All members of a team of survivors that live have it.
  void check_survivors();
};

/// The rank visits the team (Departures) while this lives.
class Visit {
 public:
  Visit(SimulatedJob& job, std::size_t team, int rank) : job_(job), team_(team), rank_(rank) {
    job_.departures.come(team_, rank_, job_.fibers.now());
  }
  ~Visit() { job_.departures.leave(team_, rank_, job_.fibers.now()); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  SimulatedJob& job_;
  std::size_t team_;
  int rank_;
};

}  // namespace torii::faults
