// SPDX-License-Identifier: Apache-2.0
// Draws histories.
#include "tests/histories/history.hpp"

#include <algorithm>
#include <random>

namespace torii::tests {
namespace {

constexpr int kPauseMostUs = 3000;

bool one_in(std::mt19937_64& random, std::uint64_t n) { return random() % n == 0; }

/// All members refuse, or some of them do something that fails the team.
void add_deviations(Step& step, const std::vector<int>& members, std::mt19937_64& random) {
  const auto refuses = [&](int rank) { step.deviations[static_cast<std::size_t>(rank)] = Deviation::refused; };
  if (one_in(random, 2)) {
    std::ranges::for_each(members, refuses);
    return;
  }
  const int chosen = members[random() % members.size()];
  switch (random() % 4) {
    case 0:
      step.other = unlike(step.call, random);
      step.deviations[static_cast<std::size_t>(chosen)] = Deviation::differs;
      return;
    case 1:
      step.deviations[static_cast<std::size_t>(chosen)] = Deviation::aborts;
      return;
    case 2:
      // All but one.
      std::ranges::for_each(members, refuses);
      step.deviations[static_cast<std::size_t>(chosen)] = Deviation::none;
      return;
    default:
      refuses(chosen);
  }
}

Step random_step(const History& history, std::mt19937_64& random) {
  Step step;
  const auto ranks = static_cast<std::size_t>(history.ranks);
  step.team = random() % history.teams;
  step.manner = static_cast<Manner>(std::min<std::uint64_t>(random() % 5, 2));
  if (one_in(random, 2)) step.manner = Manner::blocking;
  step.call = random_call(random);
  step.in_arena = one_in(random, 2);
  step.deviations.assign(ranks, Deviation::none);
  step.pauses_us.assign(ranks, 0);
  if (one_in(random, 4)) step.pauses_us[random() % ranks] = static_cast<int>(random() % kPauseMostUs);
  return step;
}

Step split_step(History& history, std::mt19937_64& random) {
  Step step = random_step(history, random);
  step.team = 0;
  step.splits = true;
  step.part = history.teams++;
  step.colors = random();
  return step;
}

std::string deviation_text(const Step& step) {
  constexpr const char* kTexts[] = {"", " is refused", " differs", " aborts"};
  std::string text;
  for (std::size_t rank = 0; rank < step.deviations.size(); ++rank) {
    if (step.deviations[rank] == Deviation::none) continue;
    text += "; rank " + std::to_string(rank) + kTexts[static_cast<std::size_t>(step.deviations[rank])];
  }
  return text;
}

}  // namespace

std::vector<int> History::members(std::size_t team, int rank) const {
  std::uint64_t colors = 0;
  for (const Step& step : steps) {
    if (step.splits && step.part == team) colors = step.colors;
  }
  std::vector<int> members;
  for (int other = 0; other < ranks; ++other) {
    if ((colors >> other & 1) == (colors >> rank & 1)) members.push_back(other);
  }
  return members;
}

bool History::may_fail(std::size_t team, int rank) const {
  const std::vector<int> all = members(team, rank);
  return std::ranges::any_of(steps, [&](const Step& step) {
    if (step.team != team || step.splits) return false;
    const auto refused = std::ranges::count_if(
        all, [&](int member) { return step.deviations[static_cast<std::size_t>(member)] == Deviation::refused; });
    const auto others = std::ranges::count_if(all, [&](int member) {
      const Deviation deviation = step.deviations[static_cast<std::size_t>(member)];
      return deviation == Deviation::aborts || (deviation == Deviation::differs && all.size() > 1);
    });
    return others != 0 || (refused != 0 && refused != std::ssize(all));
  });
}

History random_history(std::uint64_t seed, int ranks, int parts_most) {
  std::mt19937_64 random(seed);
  History history;
  history.seed = seed;
  history.ranks = ranks;
  const std::size_t parts = random() % (static_cast<unsigned>(parts_most) + 1);
  for (std::size_t part = 0; part < parts; ++part) history.steps.push_back(split_step(history, random));
  const std::size_t steps = 4 + random() % 16;
  const bool deviates = !one_in(random, 4);
  for (std::size_t i = 0; i < steps; ++i) {
    Step step = random_step(history, random);
    if (deviates && one_in(random, 6)) {
      add_deviations(step, history.members(step.team, static_cast<int>(random() % static_cast<unsigned>(ranks))),
                     random);
    }
    history.steps.push_back(step);
  }
  return history;
}

std::string text_of(const History& history) {
  constexpr const char* kManners[] = {"", "started ", "persistent "};
  std::string text =
      "history of seed " + std::to_string(history.seed) + ", " + std::to_string(history.ranks) + " ranks\n";
  for (std::size_t i = 0; i < history.steps.size(); ++i) {
    const Step& step = history.steps[i];
    text += "step " + std::to_string(i) + ": team " + std::to_string(step.team) + ", ";
    if (step.splits) {
      text += "split to part " + std::to_string(step.part) + "\n";
      continue;
    }
    text += kManners[static_cast<std::size_t>(step.manner)] + std::string("collective ") +
            std::to_string(step.call.collective) + " of " + std::to_string(step.call.count) + " x type " +
            std::to_string(step.call.type) + ", root " + std::to_string(step.call.root) + deviation_text(step) + "\n";
  }
  return text;
}

}  // namespace torii::tests
