// SPDX-License-Identifier: Apache-2.0
// A team per candidate, rounds of blocks, dropping who cannot win any more, and the final.
#include "perf/tuning/point.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>

#include "perf/common/failure.hpp"
#include "perf/common/names.hpp"

namespace torii::perf {
namespace {

/// Who is slower than the best by more than this factor is dropped. The first two rounds compare each candidate's
/// fastest block, because one block may have met something else on the machine; later ones compare medians.
constexpr std::array kLimits = {4.0, 2.0, 1.3, 1.15};
constexpr int kFastestRounds = 2;
/// The part of a point's time that the search may take; the final has the rest.
constexpr double kSearchPart = 0.7;
/// The final has so many rounds even if the point's time is over.
constexpr int kFinalRoundsMin = 5;

/// One candidate with its team. The table's choice has a new team for each point as well: one that has served other
/// points may have slots on worse pages.
class Contestant {
 public:
  /// A team with this algorithm and this table; nullptr: the table in force.
  Contestant(const Job& job, Choice choice, const char* table) : choice_(std::move(choice)) {
    torii_team_options options{};
    options.size = sizeof(options);
    options.algorithm = choice_.algorithm.c_str();
    options.tune_table = table;
    check(torii_team_create(job.context(), &options, &team_), "cannot make a team for " + to_text(choice_));
  }
  ~Contestant() { torii_team_destroy(team_); }
  Contestant(const Contestant&) = delete;
  Contestant& operator=(const Contestant&) = delete;

  /// Asks the library what it runs. False when the algorithm cannot serve the call. Every rank gets the same answer,
  /// since plans are pure functions.
  bool can(const torii_call& call) {
    torii_choice choice{};
    choice.size = sizeof(choice);
    const torii_status status = torii_choose(team_, &call, &choice);
    if (status == TORII_UNSUPPORTED) return false;
    check(status, "cannot choose for " + to_text(choice_));
    choice_.algorithm = choice.algorithm;
    if (choice_.segment_bytes == 0) choice_.segment_bytes = choice.segment_bytes;
    return true;
  }
  void add_way(CallData& data) { ways_.push_back(std::make_unique<Way>(team_, data)); }
  const std::vector<std::unique_ptr<Way>>& ways() const { return ways_; }
  const Choice& choice() const { return choice_; }
  int rounds() const { return ways_.empty() ? 0 : static_cast<int>(ways_.back()->blocks_us.size()); }

  /// Time over the table's in one round, both kinds of memory together.
  double ratio_in(size_t round, const Contestant& table) const {
    return mean([&](size_t w) { return ways_[w]->blocks_us[round] / table.ways_[w]->blocks_us[round]; });
  }
  /// The fastest block, both kinds of memory together.
  double fastest_us() const {
    return mean([&](size_t w) { return *std::min_element(ways_[w]->blocks_us.begin(), ways_[w]->blocks_us.end()); });
  }
  Measured measured(const Contestant& table) const;
  void forget_blocks() {
    for (const auto& way : ways_) way->blocks_us.clear();
  }
  /// A round that was cut short has no figures to compare.
  void keep_rounds(int rounds) {
    for (const auto& way : ways_) {
      if (way->blocks_us.size() > static_cast<size_t>(rounds)) way->blocks_us.resize(static_cast<size_t>(rounds));
    }
  }

 private:
  /// The geometric mean of one value per kind of memory.
  template <typename Value>
  double mean(const Value& value) const {
    if (ways_.size() == 1) return value(0);
    return std::sqrt(value(0) * value(1));
  }

  torii_team* team_ = nullptr;
  Choice choice_;
  std::vector<std::unique_ptr<Way>> ways_;  ///< one per kind of memory
};

Measured Contestant::measured(const Contestant& table) const {
  Measured result;
  result.choice = choice_;
  result.rounds = rounds();
  result.malloc_us = median(ways_.front()->blocks_us);
  result.allocated_us = median(ways_.back()->blocks_us);
  result.ratio = mean([&](size_t w) {
    std::vector<double> ratios;
    for (size_t round = 0; round < ways_[w]->blocks_us.size(); ++round) {
      ratios.push_back(ways_[w]->blocks_us[round] / table.ways_[w]->blocks_us[round]);
    }
    return median(ratios);
  });
  std::vector<double> deviations;
  for (int round = 0; round < result.rounds; ++round) {
    deviations.push_back(std::abs(ratio_in(static_cast<size_t>(round), table) / result.ratio - 1));
  }
  result.spread = median(deviations);
  return result;
}

/// One block of everybody on every kind of memory, starting with another one each round. False: out of time.
bool run_round(const Job& job, Meeting& meeting, const Budget& budget, const PointRequest& request,
               const std::vector<Contestant*>& active, size_t round) {
  for (size_t i = 0; i < active.size(); ++i) {
    for (const auto& way : active[(round + i) % active.size()]->ways()) {
      time_block(job, meeting, request.timing, request.block_ns, *way);
    }
    if (budget.is_over()) return false;
  }
  return true;
}

/// The table, which all are compared with, stays; so does the best of the candidates.
void drop_losers(std::vector<Contestant*>& active, const Contestant& table) {
  const int rounds = table.rounds();
  const auto score = [&](const Contestant* one) {
    return rounds <= kFastestRounds ? one->fastest_us() : one->measured(table).ratio;
  };
  double best = std::numeric_limits<double>::infinity();
  for (const Contestant* one : active) best = one == &table ? best : std::min(best, score(one));
  const double limit = best * kLimits[std::min(static_cast<size_t>(rounds), kLimits.size()) - 1];
  std::erase_if(active, [&](const Contestant* one) { return one != &table && score(one) > limit; });
}

using Contestants = std::deque<Contestant>;

/// Adds the rivals that can serve the call behind the table's choice, which is the first contestant.
void add_rivals(const Job& job, const PointRequest& request, const torii_call& call, Contestants& contestants) {
  const auto add = [&](const Choice& choice, const char* table) {
    if (!contestants.emplace_back(job, choice, table).can(call)) contestants.pop_back();
  };
  switch (request.rivals) {
    case Rivals::tunings:
      for (const Choice& choice : candidates(request.collective, request.bytes, job.ranks(), request.algorithms)) {
        add(choice, one_row_table(request.collective, choice).c_str());
      }
      break;
    case Rivals::algorithms:
      // The table's own algorithm would run the same plan again.
      for (const std::string& algorithm : request.algorithms) {
        if (algorithm != contestants.front().choice().algorithm) add({algorithm, 0, 0, 0, false}, nullptr);
      }
      break;
    case Rivals::table:
      add({"auto", 0, 0, 0, false}, request.table.c_str());
      break;
  }
}

/// Rounds of all contestants, in which losers drop out. Returns the number of whole rounds.
int search(const Job& job, Meeting& meeting, Budget& budget, const PointRequest& request, Contestants& contestants) {
  std::vector<Contestant*> active;
  for (Contestant& one : contestants) active.push_back(&one);
  int rounds = 0;
  while (rounds < request.rounds && (rounds == 0 || !budget.share_is_over(kSearchPart))) {
    if (!run_round(job, meeting, budget, request, active, static_cast<size_t>(rounds))) break;
    ++rounds;
    drop_losers(active, contestants.front());
  }
  for (Contestant& one : contestants) one.keep_rounds(rounds);
  return rounds;
}

/// New rounds of the table's choice and one other.
std::optional<Measured> run_final(const Job& job, Meeting& meeting, Budget& budget, const PointRequest& request,
                                  Contestant& table, Contestant& best) {
  table.forget_blocks();
  best.forget_blocks();
  int rounds = 0;
  while (rounds < request.rounds && (rounds < kFinalRoundsMin || !budget.share_is_over())) {
    if (!run_round(job, meeting, budget, request, {&table, &best}, static_cast<size_t>(rounds))) break;
    ++rounds;
  }
  if (rounds < std::min(kFinalRoundsMin, request.rounds)) return std::nullopt;
  table.keep_rounds(rounds);
  best.keep_rounds(rounds);
  return best.measured(table);
}

}  // namespace

PointResult measure_point(Job& job, Meeting& meeting, Budget& budget, const PointRequest& request) {
  Options options;
  options.collective = request.collective;
  std::deque<CallData> kinds;
  kinds.emplace_back(job, options, Memory::malloced, request.bytes, TORII_F32, TORII_SUM);
  if (request.collective != TORII_BARRIER) {
    kinds.emplace_back(job, options, Memory::allocated, request.bytes, TORII_F32, TORII_SUM);
  }
  const torii_call& call = kinds.front().call();
  Contestants contestants;
  Contestant& table = contestants.emplace_back(job, Choice{"auto", 0, 0, 0, false}, nullptr);
  if (!table.can(call)) throw Failure(kNotPossible, std::string("the table does not run this: ") + torii_last_error());
  add_rivals(job, request, call, contestants);
  for (Contestant& one : contestants) {
    for (CallData& data : kinds) one.add_way(data);
  }

  PointResult result;
  result.bytes = kinds.front().bytes();
  result.rounds = search(job, meeting, budget, request, contestants);
  if (result.rounds == 0) return result;
  result.table = table.measured(table);
  Contestant* best = nullptr;
  for (size_t i = 1; i < contestants.size(); ++i) {
    const Measured& one = result.candidates.emplace_back(contestants[i].measured(table));
    if (one.rounds < result.rounds || one.ratio >= 1) continue;
    if (best == nullptr || one.ratio < best->measured(table).ratio) best = &contestants[i];
  }
  // All ranks have the same figures, so they agree on the final.
  if (best != nullptr) result.best = run_final(job, meeting, budget, request, table, *best);
  return result;
}

}  // namespace torii::perf
