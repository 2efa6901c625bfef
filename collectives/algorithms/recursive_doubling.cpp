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
// The group of lower ranks is always on the left, so all ranks compute the same expression. A rank's value is the last
// one that it kept, handed on from one flow to the next. Scan and exscan are in prefix_doubling.cpp.
//
// Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA
// 19(1), 2005, on all-gather and allreduce; J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, IEEE TPDS 8(11),
// 1997, on all-gather of any number of ranks.
// Cost of allreduce for n bytes on P ranks: log2 P steps (2 more when P is no power of two), n bytes per step and rank.
// Cost of all_gather: log2 P steps, rounded up, and each block once. In pairs (2, 4 and 8 ranks) each block is a
// message, otherwise each step.
#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include "collectives/algorithms/prefix_doubling.hpp"
#include "collectives/building/butterfly.hpp"
#include "collectives/building/steps.hpp"

namespace torii {
namespace {

/// Blocks are counted within a segment's messages, in 16 bits.
constexpr int kGatherRanksMax = 65536;

/// Few ranks exchange blocks in pairs, with one message for each block, written in place. With more ranks the P - 1
/// messages instead of log2 P cost more than the copy that this saves.
bool gathers_in_pairs(int ranks) { return ranks <= 8 && std::has_single_bit(static_cast<unsigned>(ranks)); }

enum Tag : int { kExchange = 0, kFoldIn = 1, kFoldOut = 2 };

/// allreduce, and barrier, which is the same without operands.
class ExchangePlan {
 public:
  ExchangePlan(const PlanRequest& request, int rank)
      : request_(request), rank_(rank), core_(request.topology.ranks()), steps_(request, rank, 1) {}

  Plan make() {
    steps_.balance_ties();
    if (core_.in_core(rank_)) {
      exchange();
    } else {
      steps_.begin("fold in").combine(Steps::own()).send(fold_in());
      steps_.begin("fold out").combine(fold_out()).keep();
    }
    return steps_.take();
  }

 private:
  /// In each stage the value goes to the partner, and the partner's value is combined with it.
  void exchange() {
    const bool paired = core_.pair_of(rank_) >= 0;
    steps_.begin(core_.stages() == 0 ? "own" : paired ? "fold in" : "exchange").combine(Steps::own());
    if (paired) steps_.combine(fold_in());
    for (int stage = 0; stage < core_.stages(); ++stage) {
      steps_.send(with_partner(stage));
      const StreamEnd mine = steps_.hold(stage);
      const bool is_lower = (core_.index(rank_) >> stage & 1) == 0;
      steps_.begin("exchange");
      if (is_lower) steps_.combine(mine);
      steps_.combine(with_partner(stage));
      if (!is_lower) steps_.combine(mine);
    }
    steps_.keep();
    if (paired) steps_.send(fold_out());
  }

  Link fold_in() const { return with_pair(kFoldIn); }
  Link fold_out() const { return with_pair(kFoldOut); }
  Link with_pair(Tag tag) const { return {{.peer = core_.pair_of(rank_), .tag = tag}}; }
  Link with_partner(int stage) const {
    return {{.peer = core_.partner(core_.index(rank_), stage), .tag = kExchange, .wide = request_.wide_wire}};
  }

  const PlanRequest& request_;
  const int rank_;
  const Butterfly core_;
  Steps steps_;
};

/// all_gather in pairs: before stage k a rank has the blocks of its aligned group of 2^k ranks. Each block goes on to
/// the partners of all later stages as soon as it arrives. Each stage has a lane of its own, so its blocks never wait
/// for blocks of another stage. Every stream carries its blocks in increasing order, so two ranks never wait for each
/// other's later blocks.
Plan pair_gather(const PlanRequest& request, int rank) {
  const int ranks = request.topology.ranks();
  const Butterfly core(ranks);
  std::vector<int> blocks(static_cast<std::size_t>(ranks));
  std::iota(blocks.begin(), blocks.end(), 0);
  const auto group = [&](int member, int stage) {
    const int first = member >> stage << stage;
    return std::span(blocks).subspan(static_cast<std::size_t>(first), std::size_t{1} << stage);
  };
  const auto with_partner = [&](int stage, int sender) {
    return Link{{.peer = core.partner(rank, stage), .tag = kExchange, .delivery = Delivery::write_in_place},
                group(sender, stage)};
  };
  Steps steps(request, rank, ranks);
  steps.balance_ties();
  const auto send_on = [&](int first_stage) {
    for (int stage = first_stage; stage < core.stages(); ++stage) steps.send(with_partner(stage, rank));
  };
  steps.begin("own block", rank).combine(Steps::own()).keep();
  send_on(0);
  for (int stage = 0; stage < core.stages(); ++stage) {
    const int partner = core.partner(rank, stage);
    steps.lane();
    for (const int block : group(partner, stage)) {
      steps.begin("exchange", block).combine(with_partner(stage, partner)).keep();
      send_on(stage + 1);
    }
  }
  return steps.take();
}

/// all_gather in rounds: before stage k a rank has its own block and the 2^k - 1 that follow it, round the end to rank
/// 0. It takes as many, or in the last stage what is left, from the rank 2^k further on. A stage sends one message, a
/// bundle, which is filled block by block as blocks come. One lane takes them in the order of stages, and a bundle
/// needs one slot, so no stage waits for a later one.
class RoundPlan {
 public:
  RoundPlan(const PlanRequest& request, int rank)
      : ranks_(request.topology.ranks()),
        rank_(rank),
        stages_(std::bit_width(static_cast<unsigned>(ranks_ - 1))),
        builder_(request, rank, Dealing::block, ranks_) {}

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

  /// This stage may bring the end of the last bundle to be filled: then the blocks behind that end go on to one rank
  /// less.
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
  std::string reason = why_not_any(
      "recursive_doubling",
      {Collective::barrier, Collective::allreduce, Collective::all_gather, Collective::scan, Collective::exscan},
      request);
  if (!reason.empty()) return reason;
  if (request.collective == Collective::all_gather && ranks > kGatherRanksMax) {
    return "its all_gather is for up to " + std::to_string(kGatherRanksMax) + " ranks, there are " +
           std::to_string(ranks) + "; use ring";
  }
  return why_not_canonical(request, order);
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
