// SPDX-License-Identifier: Apache-2.0
// rabenseifner: a reduce-scatter that halves the vector while it doubles the distance, then the way back as a gather.
//
//   allreduce, 4 ranks, blocks 0..3: what a rank still combines, and what it has in the end
//
//   0:  0123 -1-> 01 -2-> 0 -2-> 01 -1-> 0123         -1-> exchange with the rank at distance 1
//   1:  0123 -0-> 23 -3-> 2 -3-> 23 -0-> 0123
//   2:  0123 -3-> 01 -0-> 1 -0-> 01 -3-> 0123
//   3:  0123 -2-> 23 -1-> 3 -1-> 23 -2-> 0123
//
// The nearest neighbour comes first, with the lower group on the left: the order is that of recursive_doubling. The set
// of blocks that a rank combines stays contiguous, and the rank at place i of the core ends with block bit-reverse(i).
// Each phase has a lane of its own, and all lanes visit their blocks in increasing order. Block by block is a possible
// order of the whole, so nothing deadlocks however few slots there are.
//
// Source: R. Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004, LNCS 3036; the nearest neighbour
// first as in Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005.
// Cost of allreduce for n bytes on P = 2^k ranks: 2k steps, 2n(P-1)/P bytes per rank; otherwise 2 steps and 2n more.
#include <algorithm>

#include "collectives/building/butterfly.hpp"

namespace torii {
namespace {

/// Blocks are counted within a segment's messages, in 16 bits.
constexpr int kRanksMax = 65535;

enum Tag : int { kHalve = 0, kGather = 1, kFoldIn = 2, kFoldOut = 3 };

struct Blocks {
  int first;
  int count;
};

class RabenseifnerPlan {
 public:
  RabenseifnerPlan(const PlanRequest& request, int rank)
      : request_(request),
        rank_(rank),
        all_(request.collective == Collective::allreduce),
        core_(request.topology.ranks(), all_ ? -1 : request.root),
        index_(core_.index(rank)),
        stages_(core_.stages()),
        builder_(request, rank, Dealing::block, core_.size()) {}

  Plan make() {
    if (!core_.in_core(rank_)) {
      fold_in_and_out();
    } else {
      open_gather_streams();
      reduce_scatter();
      gather();
    }
    return builder_.take();
  }

 private:
  bool bit(int stage) const { return (index_ >> stage & 1) != 0; }
  bool paired() const { return core_.pair_of(rank_) >= 0; }
  bool keeps() const { return all_ || rank_ == request_.root; }

  /// The blocks that the rank still combines before `stage`.
  Blocks held(int stage) const {
    Blocks blocks = {0, core_.size()};
    for (int done = 0; done < stage; ++done) {
      blocks.count /= 2;
      if (bit(done)) blocks.first += blocks.count;
    }
    return blocks;
  }
  /// The blocks that it leaves to its partner at `stage`.
  Blocks left(int stage) const {
    const Blocks mine = held(stage + 1);
    return {bit(stage) ? mine.first - mine.count : mine.first + mine.count, mine.count};
  }
  Walk walk(Blocks blocks) const { return blocks_from(blocks.first, blocks.count, core_.size()); }

  Stream halve_stream(int stage) const {
    return {.peer = core_.partner(index_, stage),
            .tag = kHalve,
            .messages_per_segment = held(stage + 1).count,
            .wide = request_.wide_wire};
  }
  Stream gather_stream(int stage, int receiver) const {
    const bool in_place = all_ || receiver == request_.root;
    return {.peer = core_.partner(index_, stage),
            .tag = kGather,
            .messages_per_segment = held(stage + 1).count,
            .delivery = in_place ? Delivery::write_in_place : Delivery::through_slots};
  }
  Stream pair_stream(Tag tag) const {
    return {.peer = core_.pair_of(rank_),
            .tag = tag,
            .messages_per_segment = core_.size(),
            .delivery = tag == kFoldOut ? Delivery::write_in_place : Delivery::through_slots};
  }

  void fold_in_and_out() {
    const Walk whole = blocks_from(0, core_.size(), core_.size());
    const StreamEnd to_pair = builder_.out(pair_stream(kFoldIn));
    builder_.lane().flows = {{.walk = whole, .sources = {{}}, .targets = {to_pair}, .label = "fold in"}};
    if (!all_) return;  // a root is always in the core
    const StreamEnd from_pair = builder_.in(pair_stream(kFoldOut));
    builder_.lane().flows = {{.walk = whole, .sources = {from_pair}, .keep = true, .label = "fold out"}};
  }

  /// Adds the flows whose values are the blocks held before `stage`. The half that the partner combines goes to the
  /// partner, the other half goes on to this rank's next lane. `sources` are at the first of these blocks.
  void hand_out(int stage, const std::vector<StreamEnd>& sources, std::string_view label) {
    std::vector<Flow>& flows = builder_.lane().flows;
    if (stage == stages_) {
      const Blocks block = held(stage);
      flows.push_back({.walk = walk(block),
                       .sources = sources,
                       .keep = keeps(),
                       .targets = onwards(block, stages_),
                       .label = label});
      return;
    }
    const Blocks mine = held(stage + 1);
    const Blocks theirs = left(stage);
    const StreamEnd to_partner = builder_.out(halve_stream(stage));
    Flow send = {.walk = walk(theirs), .sources = sources, .targets = {to_partner}, .label = label};
    if (sources.size() == 1) {  // an operand stays where it is
      flows.push_back(std::move(send));
      return;
    }
    const PlanBuilder::Onward onward = builder_.onward(stage, mine.count);
    Flow hold = {
        .walk = walk(mine), .sources = sources, .keep = onward.keep, .targets = {onward.target}, .label = label};
    for (StreamEnd& source : (bit(stage) ? hold : send).sources) {
      if (source.stream != kOwn) source = at(source, mine.count);
    }
    flows.push_back(bit(stage) ? send : hold);
    flows.push_back(bit(stage) ? hold : send);
    value_ = onward.source;
  }

  void reduce_scatter() {
    std::vector<StreamEnd> sources = {value_};
    if (paired()) {
      sources.push_back(builder_.in(pair_stream(kFoldIn)));
      if (core_.pair_of(rank_) < rank_) std::reverse(sources.begin(), sources.end());
    }
    hand_out(0, sources, paired() ? "fold in" : "halve");
    for (int stage = 0; stage < stages_; ++stage) {
      sources = {value_, builder_.in(halve_stream(stage))};
      if (bit(stage)) std::reverse(sources.begin(), sources.end());
      hand_out(stage + 1, sources, "halve");
    }
  }

  /// The stage at which this rank's blocks leave it on the way to the root, or -1 at the root.
  int last_gather_stage() const {
    const unsigned other = static_cast<unsigned>(index_ ^ core_.index(request_.root));
    return static_cast<int>(std::bit_width(other)) - 1;
  }

  void open_gather_streams() {
    for (int stage = 0; stage < stages_; ++stage) {
      const bool sends = all_ || stage == last_gather_stage();
      gather_out_.push_back(sends ? builder_.out(gather_stream(stage, core_.partner(index_, stage))) : StreamEnd{});
    }
    if (all_ && paired()) fold_out_ = builder_.out(pair_stream(kFoldOut));
  }

  /// The targets of finished blocks that have come by the gather of `stage` (own: stages_). They are the partners of
  /// all later gathers, whose stages are lower, and the member of the pair that is not in the core.
  std::vector<StreamEnd> onwards(Blocks blocks, int stage) const {
    std::vector<StreamEnd> targets;
    while (--stage >= 0) {
      const StreamEnd out = gather_out_[static_cast<std::size_t>(stage)];
      if (out.stream != kOwn) targets.push_back(at(out, blocks.first - held(stage + 1).first));
    }
    if (fold_out_.stream != kOwn) targets.push_back(at(fold_out_, blocks.first));
    return targets;
  }

  void gather() {
    const int after = all_ ? -1 : last_gather_stage();
    for (int stage = stages_ - 1; stage > after; --stage) {
      const StreamEnd from = builder_.in(gather_stream(stage, rank_));
      builder_.lane().flows = {{.walk = walk(left(stage)),
                                .sources = {from},
                                .keep = keeps(),
                                .targets = onwards(left(stage), stage),
                                .label = "gather"}};
    }
  }

  const PlanRequest& request_;
  const int rank_;
  const bool all_;
  const Butterfly core_;
  const int index_;
  const int stages_;
  PlanBuilder builder_;
  StreamEnd value_;                    ///< the blocks that are still combined: at first the own operand
  std::vector<StreamEnd> gather_out_;  ///< per stage; kOwn: none
  StreamEnd fold_out_;                 ///< kOwn: none
};

std::string why_not(const PlanRequest& request) {
  std::string reason = why_not_any("rabenseifner", {Collective::reduce, Collective::allreduce}, request);
  if (!reason.empty()) return reason;
  const int ranks = request.topology.ranks();
  if (ranks > kRanksMax) {
    return "rabenseifner is for up to " + std::to_string(kRanksMax) + " ranks, there are " + std::to_string(ranks);
  }
  return why_not_canonical(request, Butterfly::order);
}

Plan draft(const PlanRequest& request, int rank) { return RabenseifnerPlan(request, rank).make(); }

Plan plan(const PlanRequest& request, int rank) {
  Plan result = draft(request, rank);
  // Most streams has the root, or a member of the last pair, whose way to the root is the longest, or the root's
  // partner.
  const bool all = request.collective == Collective::allreduce;
  const Butterfly core(request.topology.ranks(), all ? -1 : request.root);
  const int last_pair = std::max(request.topology.ranks() - core.size() - 1, 0);
  const int partner = core.size() == 1 ? 0 : core.partner(core.index(request.root), 0);
  set_maxima(result, request, draft, {request.root, core.rank(0), core.rank(last_pair), partner});
  return result;
}

}  // namespace

extern const Algorithm kRabenseifner = {"rabenseifner", "recursive halving and doubling; Rabenseifner, ICCS 2004",
                                        why_not, plan, Butterfly::order};

}  // namespace torii
