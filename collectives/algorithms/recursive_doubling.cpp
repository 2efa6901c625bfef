// SPDX-License-Identifier: Apache-2.0
// recursive_doubling: in every step the ranks exchange all that they have with a partner twice as far away.
//
//   allreduce, 6 ranks (pairs 0-1 and 2-3 fold in first)        all_gather, 4 ranks: blocks exchanged
//
//   0 <- 1   0 <-> 2   0 <-> 4   0 -> 1                         0: 0 <-> 1    01 <-> 23
//   2 <- 3   4 <-> 5   2 <-> 5   2 -> 3                         1: 1 <-> 0    01 <-> 23
//
//   all_gather, 5 ranks: what rank 0 takes, a message each      0: 1 < 1    2 3 < 2    4 < 4
//
// The group of lower ranks always stands on the left, so all ranks compute the same expression. What a rank has is the
// last value that it kept, handed on from one flow to the next. Scan and exscan are in prefix_doubling.cpp.
//
// Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA
// 19(1), 2005, on all-gather and allreduce; J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, IEEE TPDS 8(11),
// 1997, on all-gather of any number of ranks.
// Cost of allreduce for n bytes on P ranks: log2 P steps (2 more when P is no power of two), n bytes per step and rank.
// Of all_gather: log2 P steps, rounded up, and each block once; in pairs (2, 4 and 8 ranks) a message for each
// block, otherwise one for each step.
#include <algorithm>
#include <bit>

#include "collectives/algorithms/prefix_doubling.hpp"
#include "collectives/building/butterfly.hpp"

namespace torii {
namespace {

/// Blocks are counted within a segment's messages, in 16 bits.
constexpr int kGatherRanksMax = 65536;

/// Few ranks exchange blocks in pairs, a message each, which land in place. P - 1 messages instead of log2 P are soon
/// more than the copy costs that this saves.
bool gathers_in_pairs(int ranks) { return ranks <= 8 && std::has_single_bit(static_cast<unsigned>(ranks)); }

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

/// all_gather in pairs: before stage k a rank has the blocks of its aligned group of 2^k ranks. Each block goes on to
/// the partners of all later stages as soon as it arrives. Lanes of their own keep blocks of one stage from waiting for
/// another's; every stream carries its blocks in increasing order, so two ranks never wait for each other's later
/// blocks.
Plan pair_gather(const PlanRequest& request, int rank) {
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

/// all_gather in rounds: before stage k a rank has its own block and the 2^k - 1 that follow it, round the end to rank
/// 0. It takes as many, or in the last stage what is left, from the rank 2^k further on. What it sends in one stage is
/// one message, a bundle, filled block by block as they come. One lane takes them in the order of stages, and a bundle
/// needs one credit, so no stage waits for a later one.
class RoundPlan {
 public:
  RoundPlan(const PlanRequest& request, int rank)
      : ranks_(request.topology.ranks()),
        rank_(rank),
        stages_(std::bit_width(static_cast<unsigned>(ranks_ - 1))),
        builder_(request, rank, Dealing::even, ranks_) {}

  Plan make() {
    builder_.balance_ties();
    for (int stage = 0; stage < stages_; ++stage) {
      out_.push_back(builder_.out(stream(stage, (rank_ + ranks_ - (1 << stage)) % ranks_)));
    }
    std::vector<Flow> flows = {
        {.walk = blocks_from(rank_, 1, ranks_), .sources = {{}}, .keep = true, .targets = targets(0), .label = "own"}};
    for (int stage = 0; stage < stages_; ++stage) take(stage, flows);
    builder_.lane().flows = std::move(flows);
    Plan plan = builder_.take();
    for (int stage = 0; stage < stages_; ++stage) plan.bundle_max = std::max(plan.bundle_max, count(stage));
    return plan;
  }

 private:
  int count(int stage) const { return std::min(1 << stage, ranks_ - (1 << stage)); }

  Stream stream(int stage, int peer) const {
    return {.peer = peer, .tag = kExchange, .messages_per_segment = count(stage), .bundle = count(stage)};
  }
  /// The bundles in which the block of the rank `ahead` of this one leaves: of all stages before which it has come.
  std::vector<StreamEnd> targets(int ahead) const {
    std::vector<StreamEnd> result;
    for (int stage = std::bit_width(static_cast<unsigned>(ahead)); stage < stages_; ++stage) {
      if (ahead < count(stage)) result.push_back(at(out_[static_cast<std::size_t>(stage)], ahead));
    }
    return result;
  }

  /// Of the last bundle to be filled this stage may bring the end: then the blocks behind it go on to one rank less.
  void take(int stage, std::vector<Flow>& flows) {
    const int ahead = 1 << stage;
    const StreamEnd source = builder_.in(stream(stage, (rank_ + ahead) % ranks_));
    const int wanted_last = stage + 1 < stages_ ? count(stages_ - 1) - ahead : 0;
    const int cut = wanted_last > 0 && wanted_last < count(stage) ? wanted_last : count(stage);
    add_taken(ahead, cut, source, flows);
    if (cut < count(stage)) add_taken(ahead + cut, count(stage) - cut, at(source, cut), flows);
  }
  void add_taken(int ahead, int blocks, StreamEnd source, std::vector<Flow>& flows) const {
    flows.push_back({.walk = blocks_from((rank_ + ahead) % ranks_, blocks, ranks_),
                     .sources = {source},
                     .keep = true,
                     .targets = targets(ahead),
                     .label = "round"});
  }

  const int ranks_;
  const int rank_;
  const int stages_;
  PlanBuilder builder_;
  std::vector<StreamEnd> out_;
};

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
  if (request.collective == Collective::all_gather && ranks > kGatherRanksMax) {
    return "its all_gather is for up to " + std::to_string(kGatherRanksMax) + " ranks, there are " +
           std::to_string(ranks) + "; use ring";
  }
  reason = why_not_any(request);
  return reason.empty() ? why_not_canonical(request, order) : reason;
}

Plan draft(const PlanRequest& request, int rank) {
  if (request.collective == Collective::all_gather) {
    return gathers_in_pairs(request.topology.ranks()) ? pair_gather(request, rank) : RoundPlan(request, rank).make();
  }
  return ExchangePlan(request, rank).make();
}

Plan plan(const PlanRequest& request, int rank) {
  if (is_prefix(request.collective)) return prefix_doubling_plan(request, rank);
  Plan result = draft(request, rank);
  set_maxima(result, request, draft, {0});  // where there are pairs, rank 0 is the core's member of one
  return result;
}

}  // namespace

extern const Algorithm kRecursiveDoubling = {
    "recursive_doubling", "recursive doubling; Thakur, Rabenseifner, Gropp 2005, section 4", why_not, plan, order};

}  // namespace torii
