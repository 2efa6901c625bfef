// SPDX-License-Identifier: Apache-2.0
// Faults that wait for a rank to come to a phase, and what all ranks together must have.
#include "tools/torii-sim/faults/simulated_job.hpp"

#include <algorithm>

namespace torii::faults {

SimulatedJob::SimulatedJob(const History& played, fibers::Fibers& on, EventLog* writes)
    : history(played), fibers(on), log(writes), departures(played.teams, played.ranks()) {
  left.assign(history.teams, 0);
  ranks.resize(static_cast<std::size_t>(history.ranks()));
  for (RankState& one : ranks) one.parts.assign(history.teams, Part::not_asked_for);
}

void SimulatedJob::fail(int rank, const std::string& what) {
  failures.push_back("rank " + std::to_string(rank) + " at " + std::to_string(fibers.now() / fibers::kMicrosecond) +
                     " us: " + what);
}

void SimulatedJob::enter(int rank, Phase phase) {
  RankState& own = state(rank);
  own.phase = phase;
  fibers.note(rank, text_of(phase));
  const int visit = own.visits[static_cast<std::size_t>(phase)]++;
  for (const Fault& fault : history.faults) {
    if (fault.rank != rank || fault.phase != phase || fault.visit != visit) continue;
    if (fault.kind == FaultKind::dies) fibers.stop_in(fault.point, {});
    if (fault.kind == FaultKind::stops) fibers.stop_in(fault.point, fault.time);
    if (fault.kind == FaultKind::lacks_memory) fibers.refuse_memory_in(fault.point, fault.times);
  }
}

bool SimulatedJob::is_timeout_right(std::size_t team, int rank, torii_status status) {
  // A rank that waits in vain for a member of another team's survivors is itself waited for here.
  if (status == TORII_TIMEOUT && waits_in_vain) return true;
  const std::vector<int> members = history.members(team, rank);
  const fibers::Time now = fibers.now();
  // A member that works in a part of the team on a slow network may come later than the others can wait. Its message is
  // under way for a while, too.
  const fibers::Time waited = departures.longest_wait(team, members, now - history.deadline(), now);
  if (status == TORII_TIMEOUT && waited + history.patience() >= history.deadline()) {
    right_timeouts.emplace(team, members.front());
  }
  return (status == TORII_TIMEOUT || status == TORII_POISONED) && right_timeouts.contains({team, members.front()});
}

bool SimulatedJob::has_refused_memory() const {
  for (int rank = 0; rank < history.ranks(); ++rank) {
    if (fibers.refusals(rank) != 0) return true;
  }
  return false;
}

void SimulatedJob::check_parts() {
  // Two deaths at the wrong moments, and members that do not run for long, may divide them (docs/failures.md).
  const auto deaths = std::ranges::count(history.faults, FaultKind::dies, &Fault::kind);
  if (deaths > 1 || history.may_time_out()) return;
  for (std::size_t team = 1; team < history.teams; ++team) {
    int with = -1;
    int without = -1;
    for (int rank = 0; rank < history.ranks(); ++rank) {
      if (fibers.is_dead(rank)) continue;
      if (state(rank).parts[team] == Part::made) with = rank;
      if (state(rank).parts[team] == Part::not_made) without = rank;
    }
    if (with >= 0 && without >= 0) {
      failures.push_back("rank " + std::to_string(with) + " has part " + std::to_string(team) +
                         " of a split, and rank " + std::to_string(without) + " has none");
    }
  }
}

/// Without deaths no two teams of survivors are made of one team, however many networks fail.
void SimulatedJob::check_one_team() {
  for (const SurvivorTeam& one : survivor_teams) {
    for (const SurvivorTeam& other : survivor_teams) {
      const bool is_of_same_team = one.team == other.team && one.depth == 0 && other.depth == 0 &&
                                   history.members(one.team, one.rank) == history.members(other.team, other.rank);
      if (!is_of_same_team || one.rank > other.rank || one.members == other.members) continue;
      failures.push_back("rank " + std::to_string(one.rank) + " and rank " + std::to_string(other.rank) +
                         " have different teams of the same survivors");
    }
  }
}

void SimulatedJob::check_survivors() {
  const auto deaths = std::ranges::count(history.faults, FaultKind::dies, &Fault::kind);
  if (deaths == 0) check_one_team();
  if (history.job.several_nodes() && (deaths > 1 || history.may_time_out())) return;
  for (const SurvivorTeam& made : survivor_teams) {
    for (const int member : made.members) {
      const auto has_it = [&](const SurvivorTeam& other) {
        return other.rank == member && other.team == made.team && other.depth == made.depth &&
               other.members == made.members;
      };
      if (fibers.is_dead(member) || std::ranges::any_of(survivor_teams, has_it)) continue;
      failures.push_back("rank " + std::to_string(made.rank) + " has a team of survivors with rank " +
                         std::to_string(member) + ", which has none");
    }
  }
}

}  // namespace torii::faults
