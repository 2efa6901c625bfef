// SPDX-License-Identifier: Apache-2.0
// A team per candidate, rounds of blocks, and dropping who cannot win any more.
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

/// One candidate with its team; the team of the table belongs to the job.
class Contestant {
 public:
  Contestant(torii_team* team, Choice choice) : team_(team), choice_(std::move(choice)) {}
  Contestant(const Job& job, torii_collective collective, Choice choice) : choice_(std::move(choice)), owns_(true) {
    const std::string table = one_row_table(collective, choice_);
    torii_team_options options{};
    options.size = sizeof(options);
    options.algorithm = choice_.algorithm.c_str();
    options.tune_table = table.c_str();
    check(torii_team_create(job.context(), &options, &team_), "cannot make a team for " + to_text(choice_));
  }
  ~Contestant() {
    if (owns_) torii_team_destroy(team_);
  }
  Contestant(const Contestant&) = delete;
  Contestant& operator=(const Contestant&) = delete;

  /// False when the algorithm cannot serve the call. Every rank gets the same answer, since plans are pure functions.
  bool can(const torii_call& call) const {
    torii_choice choice{};
    choice.size = sizeof(choice);
    const torii_status status = torii_choose(team_, &call, &choice);
    if (status != TORII_UNSUPPORTED) check(status, "cannot choose for " + to_text(choice_));
    return status == TORII_OK;
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

 private:
  /// The geometric mean of one value per kind of memory.
  template <typename Value>
  double mean(const Value& value) const {
    if (ways_.size() == 1) return value(0);
    return std::sqrt(value(0) * value(1));
  }

  torii_team* team_ = nullptr;
  Choice choice_;
  bool owns_ = false;
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
bool run_round(const Job& job, Meeting& meeting, const Budget& budget, double block_ns,
               const std::vector<Contestant*>& active, size_t round) {
  for (size_t i = 0; i < active.size(); ++i) {
    for (const auto& way : active[(round + i) % active.size()]->ways()) {
      time_block(job, meeting, block_ns, *way);
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
  torii_choice chosen{};
  chosen.size = sizeof(chosen);
  check(torii_choose(job.team(), &call, &chosen), "the table does not run this");

  std::deque<Contestant> contestants;
  const Contestant& table =
      contestants.emplace_back(job.team(), Choice{chosen.algorithm, chosen.segment_bytes, 0, 0, false});
  for (const Choice& choice : candidates(request.collective, request.bytes, job.ranks(), request.algorithms)) {
    if (!contestants.emplace_back(job, request.collective, choice).can(call)) contestants.pop_back();
  }
  std::vector<Contestant*> active;
  for (Contestant& one : contestants) {
    for (CallData& data : kinds) one.add_way(data);
    active.push_back(&one);
  }

  PointResult result;
  result.bytes = kinds.front().bytes();
  for (int round = 0; round < request.rounds; ++round) {
    if (round > 0 && budget.share_is_over()) break;
    if (!run_round(job, meeting, budget, request.block_ns, active, static_cast<size_t>(round))) break;
    result.rounds = round + 1;
    drop_losers(active, table);
  }
  // A round that was cut short has no figures to compare.
  for (Contestant& one : contestants) {
    for (const auto& way : one.ways()) {
      if (way->blocks_us.size() > static_cast<size_t>(result.rounds)) way->blocks_us.resize(result.rounds);
    }
  }
  if (result.rounds == 0) return result;
  result.table = table.measured(table);
  for (size_t i = 1; i < contestants.size(); ++i) result.candidates.push_back(contestants[i].measured(table));
  return result;
}

}  // namespace torii::perf
