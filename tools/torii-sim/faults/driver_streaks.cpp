// SPDX-License-Identifier: Apache-2.0
// Plays a streak: calls in a row, for which a rank comes late or which it does not make as the others do.
#include <algorithm>

#include "tools/torii-sim/faults/driver.hpp"

namespace torii::faults {

void Driver::lag(const Step& step, int number) {
  constexpr fibers::Time kLagMost = 4 * fibers::kMillisecond;
  constexpr fibers::Time kLookEvery = 5 * fibers::kMicrosecond;
  const fibers::Time begun = job_.fibers.now();
  for (const Lag& one : step.streak.lags) {
    if (one.rank != rank_ || one.at != number) continue;
    const int awaited = job_.state(rank_).calls_begun + one.calls;
    const auto are_ahead = [&] {
      return std::ranges::any_of(job_.ranks, [&](const RankState& other) { return other.calls_begun >= awaited; });
    };
    while (!are_ahead() && job_.fibers.now() - begun < kLagMost) job_.fibers.sleep(kLookEvery);
  }
}

/// The vectors of a call are used again for the next one of its turn, which waits for it. After a failure peers may
/// still read them, so they stay as they are: the team refuses the next call.
Driver::Call& Driver::next_in_streak(std::size_t index, int number, std::vector<Call*>& made) {
  const Step& step = history_.steps[index];
  const DrawnCall spec = step.streak.call(step.call.seed, number);
  Call*& place = made[step.streak.turn(step.call.seed, number)];
  if (place == nullptr) place = &make(index, spec, step.memory[static_cast<std::size_t>(rank_)]);
  Call& call = *place;
  const bool has_failed = call.request != nullptr && wait_for(call) != TORII_OK;
  if (call.vectors.has_changed()) {
    job_.fail(rank_, "memory was written after its call had ended" + where(index, step.team));
  }
  call.spec = spec;
  if (!has_failed) call.vectors.fill_anew(spec.seed);
  return call;
}

torii_status Driver::make_in_streak(std::size_t index, Call& call) {
  const Step& step = history_.steps[index];
  torii_team* const team = teams_[step.team];
  Words words;
  write_words(words, call.spec, call.place, call.vectors.input(), call.vectors.result());
  if (!is_served(team, words)) return TORII_OK;
  const std::string name = job_.log != nullptr ? text_of(call.spec) : "";
  if (step.manner == Manner::started) {
    call.due = index + 1;
    const torii_status status =
        timed(Phase::starting, "start " + name, [&] { return torii_start(team, &words.call, &call.request); });
    if (status != TORII_OK) judge(call, status);
    return status;
  }
  const torii_status status = timed(Phase::calling, name, [&] { return torii_run(team, &words.call); });
  judge(call, status);
  return status;
}

void Driver::run_streak(std::size_t index) {
  const Step& step = history_.steps[index];
  const Visit visit(job_, step.team, rank_);
  const Deviation deviation = step.deviations[static_cast<std::size_t>(rank_)];
  std::vector<Call*> made(step.streak.turns.size(), nullptr);
  for (int number = 0; number < step.streak.calls; ++number) {
    lag(step, number);
    ++job_.state(rank_).calls_begun;
    const bool is_odd = number == step.streak.odd_call && deviation != Deviation::none;
    if (is_odd && deviation == Deviation::leaves_out) continue;
    Call& call = is_odd ? make(index, step.other, step.memory[static_cast<std::size_t>(rank_)])
                        : next_in_streak(index, number, made);
    call.is_checked = !is_odd;
    if (make_in_streak(index, call) != TORII_OK) return;
  }
}

}  // namespace torii::faults
