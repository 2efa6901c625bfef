// SPDX-License-Identifier: Apache-2.0
// Draws which histories have standing rings, and histories of streaks, which are made for these: ranks far ahead of
// others, calls of all lengths and roots by turns on the same rings, and one call that differs among many.
#include <algorithm>

#include "tools/torii-sim/faults/drawing.hpp"
#include "tools/torii-sim/faults/elements.hpp"

namespace torii::faults {
namespace {

/// Up to 200 calls of others, and a ring has 64 entries.
constexpr int kLagMost = 200;
constexpr int kCallsMost = 260;
/// With vectors that are longer than this, fewer calls.
constexpr std::size_t kShortMost = 200;

/// Lengths that use cells, wide cells, lines, and the outbox.
constexpr std::array<std::size_t, 12> kCounts = {0, 1, 1, 2, 3, 7, 14, 15, 64, 200, 1000, 5000};

DrawnCall draw_collective(const History& history, Draw& draw) {
  DrawnCall call;
  do {
    call = draw_step(history, draw).call;
  } while (call.kind != CallKind::collective);
  call.count = draw.one_of(kCounts);
  if (has_blocks(call.collective) && draw.one_in(2)) call.unequal = true;
  return call;
}

/// A call in which nobody but `root` sends, if data go away from it; otherwise nobody but `root` receives. So it, or
/// the others, run far ahead.
DrawnCall draw_one_way(const History& history, int root, bool away, Draw& draw) {
  DrawnCall call;
  const auto fits = [&] {
    return away ? call.collective == TORII_BROADCAST || call.collective == TORII_SCATTER
                : call.collective == TORII_REDUCE || call.collective == TORII_GATHER;
  };
  for (int i = 0; i < 60 && !fits(); ++i) call = draw_collective(history, draw);
  if (fits()) call.root = root;
  return call;
}

std::vector<DrawnCall> draw_turns(const History& history, const DrawnCall& before, Draw& draw) {
  std::vector<DrawnCall> turns;
  const bool one_way = !draw.one_in(3);
  const bool away = draw.one_in(2);
  const bool one_root = draw.one_in(2);
  const int root = draw.below(history.ranks());
  const std::size_t count = 1 + draw.below(std::size_t{6});
  // Its plan has been used by a step before.
  if (!one_way && before.kind == CallKind::collective) turns.push_back(before);
  while (turns.size() < count) {
    if (!turns.empty() && draw.one_in(3)) {
      // The same call, but longer or shorter.
      turns.push_back(turns.back());
      turns.back().count = draw.one_of(kCounts);
    } else if (one_way) {
      turns.push_back(draw_one_way(history, one_root ? root : draw.below(history.ranks()), away, draw));
    } else {
      turns.push_back(draw_collective(history, draw));
    }
  }
  return turns;
}

/// Whether the library can tell the two from each other, whatever the members of the team.
bool are_unlike(const DrawnCall& one, const DrawnCall& other) {
  if (one.collective != other.collective) return true;
  return one.collective != TORII_BARRIER && !one.unequal && !other.unequal && one.count != other.count;
}

/// One rank makes another call instead of one of the streak, or leaves that out.
void add_odd_call(Step& step, int ranks, Draw& draw) {
  Deviation& one = step.deviations[draw.below(step.deviations.size())];
  step.streak.odd_call = draw.below(step.streak.calls);
  const DrawnCall call = step.streak.call(step.call.seed, step.streak.odd_call);
  // If the next call is alike, nobody can know that one was left out.
  const int next = step.streak.odd_call + 1;
  const bool may_leave_out = next < step.streak.calls && are_unlike(call, step.streak.call(step.call.seed, next));
  one = may_leave_out && draw.one_in(3) ? Deviation::leaves_out : Deviation::differs;
  step.other = unlike(call, draw.random());
  if (has_root(call.collective) && draw.one_in(2)) {
    step.other = call;
    step.other.root = (call.root + 1 + draw.below(ranks - 1)) % ranks;
  }
}

Step draw_streak(const History& history, Draw& draw) {
  Step step = draw_step(history, draw);
  step.manner = draw.one_in(4) ? Manner::started : Manner::blocking;
  Streak& streak = step.streak;
  streak.turns = draw_turns(history, history.steps.empty() ? DrawnCall{} : history.steps.back().call, draw);
  step.call = {.seed = draw.random()()};
  const auto is_long = [](const DrawnCall& call) { return call.count > kShortMost; };
  const int calls_most = std::ranges::any_of(streak.turns, is_long) ? kCallsMost / 4 : kCallsMost;
  streak.calls = 4 + draw.below(calls_most);
  streak.run = draw.one_in(2) ? 1 : 1 + draw.below(40);
  for (int lags = draw.below(4); lags > 0; --lags) {
    streak.lags.push_back({draw.below(history.ranks()), draw.below(streak.calls), 1 + draw.below(kLagMost)});
  }
  // A forced algorithm may not serve the odd call, or the one after it.
  if (draw.one_in(2) && history.job.algorithm.empty()) add_odd_call(step, history.ranks(), draw);
  return step;
}

void make_history_of_streaks(History& history, Draw& draw) {
  Job& job = history.job;
  job.nodes.assign(job.nodes.size(), 0);
  job.clock_offsets.resize(1);
  job.clock_drifts.resize(1);
  job.wires.very_late_most = 0;
  job.odd_rank = -1;
  // Some plans of the streaks have been used before, some have not.
  history.steps.resize(std::min(history.steps.size(), draw.below(std::size_t{4})));
  for (Step& step : history.steps) std::ranges::fill(step.deviations, Deviation::none);
  history.teams = 1 + static_cast<std::size_t>(std::ranges::count(history.steps, true, &Step::splits));
  for (int streaks = 1 + draw.below(2); streaks > 0; --streaks) history.steps.push_back(draw_streak(history, draw));
  if (!draw.one_in(4)) history.faults.clear();
  if (draw.one_in(6)) {
    Fault fault;
    fault.kind = draw.one_in(2) ? FaultKind::dies : FaultKind::stops;
    fault.rank = draw.below(job.ranks);
    fault.phase = Phase::calling;
    fault.visit = draw.below(kCallsMost / 2);
    fault.point = draw.of_any_size(5);
    fault.time = draw.between(fibers::kMillisecond, fibers::kSecond);
    history.faults.push_back(fault);
  }
}

}  // namespace

std::size_t Streak::turn(std::uint64_t seed, int number) const {
  return mixed(seed + static_cast<std::uint64_t>(number / run)) % turns.size();
}

DrawnCall Streak::call(std::uint64_t seed, int number) const {
  DrawnCall call = turns[turn(seed, number)];
  call.seed = mixed(seed ^ static_cast<std::uint64_t>(number) << 32);
  return call;
}

void add_rings(History& history) {
  constexpr std::uint64_t kStream = 0x72696e6773;
  Draw draw(mixed(history.seed + kStream));
  const bool has_streaks = draw.one_in(7);
  (void)draw.one_in(has_streaks ? 4 : 2);  // what follows stays as it was for each seed
  if (has_streaks) make_history_of_streaks(history, draw);
}

}  // namespace torii::faults
