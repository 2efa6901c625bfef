// SPDX-License-Identifier: Apache-2.0
// What ranks do when a team has failed: they ask for survivors, again and without some of them.
#include <algorithm>
#include <string>
#include <vector>

#include "tools/torii-sim/faults/driver.hpp"

namespace torii::faults {
namespace {

/// Between nodes the survivors of a team can be asked for so often.
constexpr int kAttempts = 4;

std::vector<int> absent_from(const torii_team* team) {
  std::vector<int> members(static_cast<std::size_t>(torii_team_ranks(team)));
  const int count = torii_team_absent(team, members.data(), static_cast<int>(members.size()));
  members.resize(static_cast<std::size_t>(std::max(count, 0)));
  return members;
}

}  // namespace

/// Until a team of survivors works: each further death costs one more.
void Driver::go_on_with_survivors(std::size_t team) {
  std::vector<torii_team*> made;
  for (std::size_t attempt = 0; attempt <= history_.faults.size(); ++attempt) {
    if (!try_survivors(made.empty() ? teams_[team] : made.back(), team, made)) break;
    // Nobody may write any more to the vectors of calls that have failed, but those that were left out.
    for (Call& call : calls_) {
      const bool is_of_team = call.team == team && call.has_ended && !call.vectors.is_sealed();
      if (is_of_team && !job_.has_left_out) call.vectors.seal();
    }
    const std::int64_t one = 1;
    std::int64_t sum = 0;
    torii_team* const next = made.back();
    const torii_status called = timed(Phase::calling_survivors, "call survivors",
                                      [&] { return torii_allreduce(next, &one, &sum, 1, TORII_I64, TORII_SUM); });
    if (called == TORII_OK && sum != torii_team_ranks(next)) job_.fail(rank_, "wrong sum over the survivors");
    if (called == TORII_OK) {
      ++job_.left[team];
      break;
    }
    const std::string cause = torii_last_error();
    if (!history_.may_fail(team, rank_) && !job_.has_left_out && !lacks_memory(cause)) {
      job_.fail(rank_, "survivors failed without a fault: " + cause);
    }
  }
  while (!made.empty()) {
    destroy(made.back());
    made.pop_back();
  }
}

/// Notes who the members are: all of them must have that team.
void Driver::note_made(std::size_t team, std::size_t depth, const torii_team* made, int parent_ranks) {
  ++job_.survivors;
  std::vector<int> ranks;
  for (int member = 0; member < torii_team_ranks(made); ++member) {
    ranks.push_back(torii_team_context_rank(made, member));
  }
  job_.survivor_teams.push_back({team, depth, rank_, ranks});
  for (int rank = 0; rank < history_.ranks(); ++rank) {
    const bool is_in = std::ranges::find(ranks, rank) != ranks.end();
    if (!is_in && !job_.fibers.is_gone(rank)) {
      job_.has_left_out = job_.has_left_out || torii_team_ranks(made) < parent_ranks;
    }
  }
}

/// One call. The first ones on a team may make no sense, or leave out a rank for which the others wait.
torii_status Driver::ask_for_survivors(torii_team* failed, int attempt, std::vector<int>& without, torii_team*& next) {
  const Asking& asking = history_.asking;
  torii_team_options options = {};
  options.size = sizeof(options);
  const bool refuses = attempt == 0 && asking.refuses == rank_;
  std::vector<int> list = without;
  if (attempt == 0 && asking.differs == rank_ && torii_team_ranks(failed) > 2) {
    list = {(torii_team_rank(failed) + 1) % torii_team_ranks(failed)};
  }
  options.without = list.data();
  options.without_count = static_cast<int>(list.size());
  return timed(Phase::choosing_survivors, "survivors",
               [&] { return torii_team_survivors(failed, &options, refuses ? nullptr : &next); });
}

bool Driver::try_survivors(torii_team* failed, std::size_t team, std::vector<torii_team*>& made) {
  // A member whose last call succeeded knows of no failure, and does not come. Who waits for it is waited for in other
  // teams meanwhile.
  const auto note_leavers = [&] { job_.waits_in_vain = job_.waits_in_vain || job_.left[team] != 0; };
  const bool has_bad_calls = history_.asking.refuses >= 0 || history_.asking.differs >= 0;
  std::vector<int> without;
  torii_status status = TORII_OK;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    torii_team* next = nullptr;
    note_leavers();
    status = ask_for_survivors(failed, attempt, without, next);
    if (status == TORII_OK) {
      note_made(team, made.size(), next, torii_team_ranks(failed));
      made.push_back(next);
      return true;
    }
    note_leavers();
    if (next != nullptr) job_.fail(rank_, "a team although there is none");
    const bool was_bad = has_bad_calls && (status == TORII_INVALID_ARGUMENT || status == TORII_MISMATCH);
    const bool was_late = history_.asking.repeats && status == TORII_TIMEOUT;
    if (!was_bad && !was_late) break;
    if (was_late) without = absent_from(failed);
  }
  const bool lacks_memory = status == TORII_NO_RESOURCE && job_.has_refused_memory();
  // A call that was refused once and never again by some rank, or that waits for one that has given up.
  const bool is_expected = lacks_memory || history_.may_time_out() || job_.waits_in_vain || job_.has_left_out ||
                           (has_bad_calls && history_.has({FaultKind::dies, FaultKind::lacks_memory}));
  if (!is_expected) {
    job_.fail(rank_, "no team of survivors: " + std::string(torii_status_name(status)) + ": " + torii_last_error() +
                         where(history_.steps.size(), team));
  }
  return false;
}

}  // namespace torii::faults
