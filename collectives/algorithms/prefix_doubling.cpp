// SPDX-License-Identifier: Apache-2.0
// Scan and exscan by recursive doubling: groups of 1, 2, 4, ... ranks meet the group beside them.
//
//   6 ranks: which total each rank takes at each stage; a-b is the total of ranks a to b
//
//   rank       0       1       2       3       4       5
//   stage 0    1       0 *     3       2 *             4 *        * put before the prefix
//   stage 1    2-3     2-3     0-1 *   0-1 *
//   stage 2                                    0-3 *   0-3 *
//
// The lower group of a pair gives its total to the upper one, where it goes before each rank's prefix. Totals of both
// are merged only where a rank further up wants the merged one. A total that is both merged and put before the prefix
// is two messages of one payload, since a message is taken once.
//
// Source: W. D. Hillis, G. L. Steele, Data Parallel Algorithms, CACM 29(12), 1986, on sums of all prefixes; the groups
// are those of recursive doubling.
// Cost for n bytes on P ranks: ceil(log2 P) steps, n bytes a step each way, at most 2 folds a step.
// Order: canonical for every rank: a prefix is the totals of the powers of two in its length, largest first.
#include "collectives/algorithms/prefix_doubling.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "collectives/building/steps.hpp"

namespace torii {
namespace {

/// The totals that each rank needs at each stage, on that many ranks.
class Groups {
 public:
  explicit Groups(int ranks) : ranks_(ranks) {
    while (1 << stages_ < ranks) ++stages_;
  }
  int stages() const { return stages_; }
  static bool is_upper(int rank, int stage) { return (rank >> stage & 1) != 0; }
  static int partner(int rank, int stage) { return rank ^ (1 << stage); }
  bool gives_prefix(int rank, int stage) const { return !is_upper(rank, stage) && partner(rank, stage) < ranks_; }
  bool merges(int rank, int stage) const { return is_wanted(rank, stage + 1); }
  bool gives_total(int rank, int stage) const {
    return partner(rank, stage) < ranks_ && merges(partner(rank, stage), stage);
  }
  /// How often the prefix is handed on from one stage to a later one.
  static int prefix_hops(int rank) { return std::max(std::popcount(static_cast<unsigned>(rank)) - 1, 0); }

  int in_streams(int rank) const {
    int count = prefix_hops(rank);
    for (int stage = 0; stage < stages_; ++stage) {
      count += (is_upper(rank, stage) ? 1 : 0) + (merges(rank, stage) ? (stage > 0 ? 2 : 1) : 0);
    }
    return count;
  }
  int out_streams(int rank) const {
    int count = prefix_hops(rank);
    for (int stage = 0; stage < stages_; ++stage) {
      count += (gives_prefix(rank, stage) ? 1 : 0) + (gives_total(rank, stage) ? 1 : 0) +
               (stage > 0 && merges(rank, stage) ? 1 : 0);
    }
    return count;
  }

 private:
  /// Whether any rank uses the total that `rank` has before `stage`. A rank takes it as a prefix at this stage, or at a
  /// later one, merged with others by ranks further down of the same group.
  bool is_wanted(int rank, int stage) const {
    for (int later = stage; later < stages_; ++later) {
      const int lowest = rank & ~((1 << later) - (1 << stage));
      if (!is_upper(rank, later) && lowest + (1 << later) < ranks_) return true;
    }
    return false;
  }

  int ranks_;
  int stages_ = 0;
};

class PrefixPlan {
 public:
  PrefixPlan(const PlanRequest& request, int rank)
      : request_(request), rank_(rank), groups_(request.topology.ranks()), steps_(request, rank, 1) {}

  Plan make() {
    const bool is_inclusive = request_.collective == Collective::scan;
    if (is_inclusive) prefix_ = Steps::own();
    steps_.begin("give").combine(total_);
    give(0);
    for (int stage = 0; stage < groups_.stages(); ++stage) {
      // The own operand is read for the last time before the prefix is written, which may be in its place.
      if (groups_.merges(rank_, stage)) merge(stage);
      if (Groups::is_upper(rank_, stage)) extend_prefix(stage);
    }
    if (is_inclusive && rank_ == 0) steps_.begin("own").combine(Steps::own()).keep();
    return steps_.take();
  }

 private:
  Link total(int peer, int stage) const { return {{.peer = peer, .tag = 2 * stage, .wide = request_.wide_wire}}; }
  Link prefix(int peer, int stage) const { return {{.peer = peer, .tag = 2 * stage + 1, .wide = request_.wide_wire}}; }

  /// Sends the total that this rank has before `stage` to the ranks that take it there.
  void give(int stage) {
    if (stage == groups_.stages()) return;
    const int partner = Groups::partner(rank_, stage);
    if (groups_.gives_prefix(rank_, stage)) steps_.send(prefix(partner, stage));
    if (groups_.gives_total(rank_, stage)) steps_.send(total(partner, stage));
  }

  void merge(int stage) {
    const Link theirs = total(Groups::partner(rank_, stage), stage);
    steps_.begin("merge");
    if (Groups::is_upper(rank_, stage)) {
      steps_.combine(theirs).combine(total_);
    } else {
      steps_.combine(total_).combine(theirs);
    }
    give(stage + 1);
    // The result is the prefix's place, so a total goes on through slots.
    if (stage + 1 < groups_.stages() && groups_.merges(rank_, stage + 1)) total_ = steps_.hold(total(rank_, stage));
  }

  void extend_prefix(int stage) {
    steps_.begin("prefix").combine(prefix(Groups::partner(rank_, stage), stage));
    if (prefix_) steps_.combine(*prefix_);
    const bool is_last = rank_ >> (stage + 1) == 0;
    if (is_last) {
      steps_.keep();
    } else {
      prefix_ = steps_.hold(2 * stage + 1);
    }
  }

  const PlanRequest& request_;
  const int rank_;
  const Groups groups_;
  Steps steps_;
  StreamEnd total_ = Steps::own();   ///< of this rank's group
  std::optional<StreamEnd> prefix_;  ///< this rank's result so far; an exscan begins without one
};

/// The total of the 2^stage ranks from `first` on.
ExpressionId total(int first, int stage, bool rounded, ExpressionPool& pool) {
  if (stage == 0) return pool.leaf(first);
  const int half = 1 << (stage - 1);
  const ExpressionId operands[] = {total(first, stage - 1, rounded, pool),
                                   total(first + half, stage - 1, rounded, pool)};
  return pool.fold(operands, rounded);
}

}  // namespace

Plan prefix_doubling_plan(const PlanRequest& request, int rank) {
  Plan plan = PrefixPlan(request, rank).make();
  const Groups groups(plan.ranks);
  for (int other = 0; other < plan.ranks; ++other) {
    plan.in_streams_max = std::max(plan.in_streams_max, groups.in_streams(other));
    plan.out_streams_max = std::max(plan.out_streams_max, groups.out_streams(other));
  }
  return plan;
}

ExpressionId prefix_doubling_order(const PlanRequest& request, int rank, ExpressionPool& pool) {
  const bool rounded = !request.wide_wire;
  ExpressionId value = request.collective == Collective::scan ? pool.leaf(rank) : kNoExpression;
  for (int stage = 0; rank >> stage != 0; ++stage) {
    if (!Groups::is_upper(rank, stage)) continue;
    const ExpressionId before = total((rank >> stage << stage) - (1 << stage), stage, rounded, pool);
    const ExpressionId operands[] = {before, value};
    value = value == kNoExpression ? before : pool.fold(operands, rounded);
  }
  return value == kNoExpression ? value : pool.rounded(value);
}

}  // namespace torii
