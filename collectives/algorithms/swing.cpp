// SPDX-License-Identifier: Apache-2.0
// swing: a reduce-scatter and an all-gather whose partners swing to and fro, so that they stay near on a torus.
//
//   ring of 8, whom each rank meets            distances 1, -1, 3 from even ranks, the other way from odd ones;
//                                              the next ones would be -5, 11, ...: a third of a power of two
//   step 0   0-1  2-3  4-5  6-7
//   step 1   0-7  1-2  3-4  5-6                (recursive halving on a ring would use distances 1, 2, 4)
//   step 2   0-3  1-6  2-5  4-7
//
// At each step a rank sends its partner the half of its blocks that the partner, or whom that one meets later, ends up
// with. A block that leaves is folded from the own operand and what came for it at the steps before, all in one pass.
// The gather goes the steps backwards. All lanes and streams have their blocks in ascending order. Block by block is a
// possible order of the whole, so nothing deadlocks however few slots there are. On a torus of D dimensions the vector
// has 2D parts, which begin with different dimensions, in both directions. Dimensions take turns; a dimension that is
// used up is left out.
//
// Fallback: an extent is no power of two, or nodes have several ranks. Then the largest power of two of ranks swings
// along one ring in rank order. Each other rank folds into its neighbour first and gets the result from that neighbour.
//
// Source: D. De Sensi, T. Bonato, D. Saam, T. Hoefler, Swing: Short-cutting Rings for Higher Bandwidth Allreduce,
// NSDI 2024, sections 3 and 4: the bandwidth-optimal version.
// Cost for n bytes on P = 2^k ranks: 2k steps, 2n(P-1)/P bytes per rank; otherwise 2 steps and 2n more.
// Order of block b, at rank b: own, then what came at steps 0, 1, ..., each the same way.
#include <algorithm>

#include "collectives/building/plan_builder.hpp"
#include "collectives/building/swing_parts.hpp"

namespace torii {
namespace {

/// Every rank has a flow for every block of every part: plans grow with the number of ranks.
constexpr int kRanksMax = 512;

class SwingPlan {
 public:
  SwingPlan(const PlanRequest& request, int rank)
      : request_(request),
        rank_(rank),
        core_(request.topology.ranks()),
        member_(core_.index(rank)),
        parts_(swing_parts(request.topology)),
        builder_(request, rank, Dealing::block, parts_ * core_.size()) {}

  Plan make() {
    for (part_ = 0; part_ < parts_; ++part_) {
      const SwingPart part(request_.topology, part_);
      if (core_.in_core(rank_)) {
        exchange(part);
      } else {
        fold_in_and_out();
      }
    }
    return builder_.take();
  }

 private:
  bool is_paired() const { return core_.pair_of(rank_) >= 0; }
  int tag(int step, bool is_gather) const { return 2 * (part_ * (core_.stages() + 1) + step) + (is_gather ? 1 : 0); }

  Stream stream(const SwingPart& part, int step, bool is_gather) const {
    return {.peer = core_.rank(part.peer(member_, step)),
            .tag = tag(step, is_gather),
            .messages_per_segment = part.blocks_at(step),
            .delivery = is_gather ? Delivery::write_in_place : Delivery::through_slots,
            .wide = !is_gather && request_.wide_wire};
  }
  /// To and from the other member of a pair: operands before the first step, results after the last one.
  Stream pair_stream(bool is_result) const {
    return {.peer = core_.pair_of(rank_),
            .tag = tag(core_.stages(), is_result),
            .messages_per_segment = core_.size(),
            .delivery = is_result ? Delivery::write_in_place : Delivery::through_slots};
  }

  void fold_in_and_out() {
    const Walk whole = blocks_from(part_ * core_.size(), core_.size(), parts_ * core_.size());
    const StreamEnd to_pair = builder_.out(pair_stream(false));
    builder_.lane().flows = {{.walk = whole, .sources = {{}}, .targets = {to_pair}, .label = "fold in"}};
    const StreamEnd from_pair = builder_.in(pair_stream(true));
    builder_.lane().flows = {{.walk = whole, .sources = {from_pair}, .keep = true, .label = "fold out"}};
  }

  /// A stream, and the ascending blocks that its messages carry.
  struct BlockStream {
    StreamEnd end;
    const std::vector<int>* order;  ///< nullptr: all of the part
    StreamEnd of(int block) const {
      if (order == nullptr) return at(end, block);
      return at(end, static_cast<int>(std::lower_bound(order->begin(), order->end(), block) - order->begin()));
    }
  };

  /// A lane of one step for each of `blocks`, of that form.
  void write(const std::vector<int>& blocks, const Flow& form, const std::vector<BlockStream>& sources,
             const std::vector<BlockStream>& targets) {
    StepWriter writer(builder_.lane(), parts_ * core_.size());
    for (const int block : blocks) {
      Flow step = form;
      for (const BlockStream& source : sources) step.sources.push_back(source.of(block));
      for (const BlockStream& target : targets) step.targets.push_back(target.of(block));
      writer.add(part_ * core_.size() + block, std::move(step));
    }
  }

  void exchange(const SwingPart& part) {
    const int steps = part.steps();
    std::vector<std::vector<int>> held;  // by step, after it: what comes then, and goes there in the gather
    for (int step = 0; step < steps; ++step) held.push_back(part.held(member_, step + 1));
    std::vector<BlockStream> sources;
    std::vector<BlockStream> onwards;
    if (is_paired()) {
      sources.push_back({builder_.in(pair_stream(false)), nullptr});
      onwards.push_back({builder_.out(pair_stream(true)), nullptr});
    }
    for (int step = 0; step < steps; ++step) {
      const std::vector<int> leaving = part.held(part.peer(member_, step), step + 1);
      const BlockStream to = {builder_.out(stream(part, step, false)), &leaving};
      write(leaving, {.sources = {{}}, .label = "reduce"}, sources, {to});
      sources.push_back({builder_.in(stream(part, step, false)), &held[static_cast<std::size_t>(step)]});
      onwards.push_back({builder_.out(stream(part, step, true)), &held[static_cast<std::size_t>(step)]});
    }
    write({member_}, {.sources = {{}}, .keep = true, .label = "own block"}, sources, onwards);
    for (int step = steps - 1; step >= 0; --step) {
      onwards.pop_back();
      const std::vector<int> coming = part.held(part.peer(member_, step), step + 1);
      const BlockStream from = {builder_.in(stream(part, step, true)), &coming};
      write(coming, {.keep = true, .label = "gather"}, {from}, onwards);
    }
  }

  const PlanRequest& request_;
  const int rank_;
  const Butterfly core_;
  const int member_;  ///< of the core: this rank, or the other one of its pair
  const int parts_;
  int part_ = 0;
  PlanBuilder builder_;
};

/// The expression that `member` has of a block before it sends it at `step`.
ExpressionId value_at(const SwingPart& part, int member, int step, bool rounded, ExpressionPool& pool) {
  const Butterfly& core = part.core();
  const int rank = core.rank(member);
  std::vector<ExpressionId> operands = {pool.leaf(rank)};
  if (core.pair_of(rank) >= 0) operands.push_back(pool.leaf(core.pair_of(rank)));
  for (int earlier = 0; earlier < step; ++earlier) {
    operands.push_back(value_at(part, part.peer(member, earlier), earlier, rounded, pool));
  }
  return pool.fold(operands, rounded);
}

ExpressionId order(const PlanRequest& request, int block, ExpressionPool& pool) {
  const int size = Butterfly(request.topology.ranks()).size();
  const SwingPart part(request.topology, block / size);
  return pool.rounded(value_at(part, block % size, part.steps(), !request.wide_wire, pool));
}

std::string why_not(const PlanRequest& request) {
  std::string reason = why_not_any("swing", {Collective::allreduce}, request);
  if (!reason.empty()) return reason;
  const int ranks = request.topology.ranks();
  if (ranks > kRanksMax) {
    return "swing is for up to " + std::to_string(kRanksMax) + " ranks, there are " + std::to_string(ranks) +
           "; bucket, trinaryx3 and ring do more";
  }
  if (request.determinism == Determinism::canonical && ranks > 1) {
    return "every block is combined in another order, that in which partners swing; node and binomial honour canonical";
  }
  return "";
}

Plan plan(const PlanRequest& request, int rank) {
  Plan result = SwingPlan(request, rank).make();
  const Butterfly core(result.ranks);
  const bool has_pairs = core.size() != result.ranks;
  const int streams = swing_parts(request.topology) * (2 * core.stages() + (has_pairs ? 1 : 0));
  result.in_streams_max = result.out_streams_max = streams;
  return result;
}

}  // namespace

extern const Algorithm kSwing = {"swing", "swing; De Sensi, Bonato, Saam, Hoefler, NSDI 2024, sections 3 and 4",
                                 why_not, plan,
                                 order,   nullptr,
                                 nullptr, nullptr,
                                 12};

}  // namespace torii
