// SPDX-License-Identifier: Apache-2.0
// recursive_doubling: in every step the ranks exchange all that they have with a partner twice as far away.
//
//   allreduce, 6 ranks (pairs 0-1 and 2-3 fold in first)        all_gather, 4 ranks: blocks exchanged
//
//   0 <- 1   0 <-> 2   0 <-> 4   0 -> 1                         0: 0 <-> 1    01 <-> 23
//   2 <- 3   4 <-> 5   2 <-> 5   2 -> 3                         1: 1 <-> 0    01 <-> 23
//
// The group of lower ranks always stands on the left, so all ranks compute the same expression. What a rank has is the
// last value that it kept, handed on from one flow to the next. Scan and exscan are in prefix_doubling.cpp.
//
// Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA
// 19(1), 2005, on all-gather and allreduce.
// Cost of allreduce for n bytes on P ranks: log2 P steps (2 more when P is no power of two), n bytes per step and rank.
#include <algorithm>

#include "collectives/algorithms.hpp"
#include "collectives/butterfly.hpp"
#include "collectives/prefix_doubling.hpp"

namespace torii {
namespace {

/// Blocks are counted within a segment's messages, in 16 bits.
constexpr int kGatherRanksMax = 65536;

enum Tag : int { kExchange = 0, kFoldIn = 1, kFoldOut = 2 };

/// allreduce, and barrier, which is the same without operands.
class ExchangePlan {
 public:
  ExchangePlan(const PlanRequest& request, int rank)
      : request_(request),
        rank_(rank),
        core_(request.topology.ranks()),
        carries_data_(request.collective != Collective::barrier),
        builder_(request, rank, Dealing::even, 1),
        flows_(builder_.lane().flows) {}

  Plan make() {
    builder_.balance_ties();
    if (!core_.in_core(rank_)) {
      fold_in_and_out();
    } else if (core_.stages() == 0) {
      if (carries_data_) flows_.push_back({.sources = {{}}, .keep = true, .label = "own"});
    } else {
      exchange();
    }
    return builder_.take();
  }

 private:
  std::vector<StreamEnd> own() const { return carries_data_ ? std::vector{StreamEnd{}} : std::vector<StreamEnd>{}; }

  Stream fold_in() const {
    // The result comes back in the same segment, before the lane may go on by a window. As for fold_out() the other
    // way.
    return {.peer = core_.pair_of(rank_), .tag = kFoldIn, .credits = !credits_are_implied(request_.tuning, 1)};
  }
  Stream fold_out() const {
    return {.peer = core_.pair_of(rank_), .tag = kFoldOut, .credits = !credits_are_implied(request_.tuning, 1)};
  }
  Stream with_partner(int stage) const {
    // The partner's message of the next window shows that it has done this one; it reaches the sending flow, which may
    // come before the receiving one, another window later.
    return {.peer = core_.partner(core_.index(rank_), stage),
            .tag = kExchange,
            .wide = request_.wide_wire,
            .credits = !credits_are_implied(request_.tuning, 2)};
  }

  void fold_in_and_out() {
    flows_.push_back({.sources = own(), .targets = {builder_.out(fold_in())}, .label = "fold in"});
    flows_.push_back({.sources = {builder_.in(fold_out())}, .keep = carries_data_, .label = "fold out"});
  }

  /// Sends the value of `flow` to the partner of `stage` and on to this rank's next flow, whose source is returned.
  StreamEnd send_on(Flow flow, int stage) {
    flow.targets.push_back(builder_.out(with_partner(stage)));
    StreamEnd held;  // an operand stays where it is
    if (carries_data_ && flow.sources.size() > 1) {
      const PlanBuilder::Onward onward = builder_.onward(stage, 1, !credits_are_implied(request_.tuning, 1));
      flow.targets.push_back(onward.target);
      flow.keep = onward.keep;
      held = onward.source;
    }
    flows_.push_back(std::move(flow));
    return held;
  }

  void exchange() {
    const bool paired = core_.pair_of(rank_) >= 0;
    Flow first = {.sources = own(), .label = paired ? "fold in" : "exchange"};
    if (paired) first.sources.push_back(builder_.in(fold_in()));
    StreamEnd held = send_on(std::move(first), 0);
    for (int stage = 0; stage < core_.stages(); ++stage) {
      Flow flow = {.label = "exchange"};
      if (carries_data_) flow.sources.push_back(held);
      flow.sources.push_back(builder_.in(with_partner(stage)));
      if ((core_.index(rank_) >> stage & 1) != 0) std::reverse(flow.sources.begin(), flow.sources.end());
      if (stage + 1 < core_.stages()) {
        held = send_on(std::move(flow), stage + 1);
        continue;
      }
      flow.keep = carries_data_;
      if (paired) flow.targets.push_back(builder_.out(fold_out()));
      flows_.push_back(std::move(flow));
    }
  }

  const PlanRequest& request_;
  const int rank_;
  const Butterfly core_;
  const bool carries_data_;
  PlanBuilder builder_;
  std::vector<Flow>& flows_;
};

/// all_gather: before stage k a rank has the blocks of its aligned group of 2^k ranks. Each block goes on to the
/// partners of all later stages as soon as it arrives. Lanes of their own keep blocks of one stage from waiting for
/// another's; every stream carries its blocks in increasing order, so two ranks never wait for each other's later
/// blocks.
Plan gather_draft(const PlanRequest& request, int rank) {
  const int ranks = request.topology.ranks();
  const Butterfly core(ranks);
  PlanBuilder builder(request, rank, Dealing::even, ranks);
  builder.balance_ties();
  const auto group = [](int member, int stage) { return member >> stage << stage; };
  const auto stream = [&](int stage) {
    return Stream{.peer = core.partner(rank, stage),
                  .tag = kExchange,
                  .messages_per_segment = 1 << stage,
                  .carriage = Carriage::land};
  };
  std::vector<StreamEnd> out;
  out.reserve(static_cast<std::size_t>(core.stages()));
  for (int stage = 0; stage < core.stages(); ++stage) out.push_back(builder.out(stream(stage)));
  const auto targets = [&](int first_block, int stage) {
    std::vector<StreamEnd> result;
    for (; stage < core.stages(); ++stage) {
      result.push_back(at(out[static_cast<std::size_t>(stage)], first_block - group(rank, stage)));
    }
    return result;
  };
  builder.lane().flows = {{.walk = blocks_from(rank, 1, ranks),
                           .sources = {{}},
                           .keep = true,
                           .targets = targets(rank, 0),
                           .label = "own block"}};
  for (int stage = 0; stage < core.stages(); ++stage) {
    const int first_block = group(core.partner(rank, stage), stage);
    builder.lane().flows = {{.walk = blocks_from(first_block, 1 << stage, ranks),
                             .sources = {builder.in(stream(stage))},
                             .keep = true,
                             .targets = targets(first_block, stage + 1),
                             .label = "exchange"}};
  }
  return builder.take();
}

ExpressionId order(const PlanRequest& request, int place, ExpressionPool& pool) {
  if (is_prefix(request.collective)) return prefix_doubling_order(request, place, pool);
  return Butterfly::order(request, place, pool);
}

std::string why_not(const PlanRequest& request) {
  const int ranks = request.topology.ranks();
  std::string reason = no_such_collective(
      "recursive_doubling",
      {Collective::barrier, Collective::allreduce, Collective::all_gather, Collective::scan, Collective::exscan},
      request.collective);
  if (!reason.empty()) return reason;
  if (request.collective == Collective::all_gather) {
    if (!std::has_single_bit(static_cast<unsigned>(ranks))) {
      return "its all_gather needs a power of two as number of ranks, there are " + std::to_string(ranks) +
             "; use node or ring";
    }
    if (ranks > kGatherRanksMax) {
      return "its all_gather is for up to " + std::to_string(kGatherRanksMax) + " ranks, there are " +
             std::to_string(ranks);
    }
  }
  reason = why_not_any(request);
  return reason.empty() ? why_not_canonical(request, order) : reason;
}

Plan draft(const PlanRequest& request, int rank) {
  if (request.collective == Collective::all_gather) return gather_draft(request, rank);
  return ExchangePlan(request, rank).make();
}

Plan plan(const PlanRequest& request, int rank) {
  if (is_prefix(request.collective)) return prefix_doubling_plan(request, rank);
  Plan result = draft(request, rank);
  set_maxima(result, request, draft, {0});  // where there are pairs, rank 0 is the core's member of one
  return result;
}

}  // namespace

const Algorithm kRecursiveDoubling = {
    "recursive_doubling", "recursive doubling; Thakur, Rabenseifner, Gropp 2005, section 4", why_not, plan, order};

}  // namespace torii
