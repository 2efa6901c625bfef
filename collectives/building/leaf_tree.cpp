// SPDX-License-Identifier: Apache-2.0
// Up a tree of subtrees, down a tree of ranks.
#include "collectives/building/leaf_tree.hpp"

#include <algorithm>

#include "collectives/building/plan_builder.hpp"
#include "collectives/building/tree_flows.hpp"

namespace torii {
namespace {

enum Tag : int { kTurn = 0, kDown = 1, kUp = 2 };  // kUp + number of a subtree

class LeafTree {
 public:
  LeafTree(const PlanRequest& request, int rank)
      : request_(request),
        leaves_(*request.leaves),
        rank_(rank),
        ranks_(leaves_.ranks()),
        top_(leaves_.subtrees().front().rank),
        spreads_(request.collective == Collective::allreduce),
        builder_(request, rank, Dealing::block, 1) {}

  Plan make() {
    add_up();
    if (spreads_) {
      add_down();
    } else if (rank_ == request_.root && top_ != rank_) {
      add_delivery(builder_, top_);
    }
    Plan plan = builder_.take();
    plan.slots = std::max(plan.slots, LeafTurn::slots_least(leaves_.operands_max()));
    set_maxima(plan);
    return plan;
  }

 private:
  const LeafSubtree& subtree(int number) const { return leaves_.subtrees()[static_cast<std::size_t>(number)]; }

  /// How the value of a subtree goes to its parent's rank: by turns with those of all subtrees of its rank that have
  /// parents there. The first of a stream's gives it its tag.
  struct Up {
    LeafTurn turn;
    int first = 0;
  };
  Up up_of(int number) const {
    const LeafSubtree& here = subtree(number);
    const int to = subtree(here.parent).rank;
    std::vector<int> all;
    for (int one = leaves_.first_subtree(here.rank); one < leaves_.first_subtree(here.rank + 1); ++one) {
      if (subtree(one).parent >= 0 && subtree(subtree(one).parent).rank == to) all.push_back(one);
    }
    const auto place = std::ranges::find(all, number) - all.begin();
    const LeafTurn turn = LeafTurn::of(static_cast<int>(place), static_cast<int>(all.size()));
    return {turn, all[static_cast<std::size_t>(turn.stream)]};
  }
  static Stream up_stream(const Up& up, int peer) {
    return {.peer = peer, .tag = kUp + up.first, .messages_per_segment = up.turn.messages};
  }
  Stream down_stream(int peer) const { return {.peer = peer, .tag = kDown, .delivery = Delivery::write_in_place}; }
  Stream turn_stream() const { return {.peer = rank_, .tag = kTurn, .delivery = Delivery::local}; }

  /// The last subtree first: each is combined into an earlier one, so no lane waits for what comes later in it.
  void add_up() {
    std::vector<Flow> flows;
    for (int number = leaves_.first_subtree(rank_ + 1) - 1; number >= leaves_.first_subtree(rank_); --number) {
      const LeafSubtree& here = subtree(number);
      Flow flow = {.sources = {{kOwn, static_cast<std::uint16_t>(here.operand)}}, .label = "up tree 0"};
      for (const int child : here.children) {
        const Up up = up_of(child);
        flow.sources.push_back(builder_.in_at(up_stream(up, subtree(child).rank), up.turn.position));
      }
      if (number == 0) {
        finish(flow);
      } else {
        const Up up = up_of(number);
        flow.targets = {builder_.out_at(up_stream(up, subtree(here.parent).rank), up.turn.position)};
      }
      flows.push_back(std::move(flow));
    }
    builder_.lane().flows = std::move(flows);
  }

  /// The value of the first subtree is the result.
  void finish(Flow& flow) {
    flow.keep = spreads_ || rank_ == request_.root;
    if (!flow.keep) flow.targets = {builder_.out({.peer = request_.root, .tag = kDeliveryTag})};
    if (spreads_ && ranks_ > 1) flow.targets = {builder_.out(turn_stream())};
  }

  void add_down() {
    if (ranks_ == 1) return;
    const int distance = distance_of(rank_);
    Flow flow = {.keep = distance != 0, .label = "down tree 0"};
    flow.sources = {builder_.in(distance == 0 ? turn_stream() : down_stream(rank_at(distance & (distance - 1))))};
    for (int bit = bit_behind_children(distance) / 2; bit > 0; bit /= 2) {
      flow.targets.push_back(builder_.out(down_stream(rank_at(distance + bit))));
    }
    builder_.lane().flows = {std::move(flow)};
  }

  int distance_of(int rank) const { return (rank - top_ + ranks_) % ranks_; }
  int rank_at(int distance) const { return (top_ + distance) % ranks_; }
  /// The children of a rank are as far behind it as the powers of two below this one.
  int bit_behind_children(int distance) const {
    int bit = 1;
    while (distance + bit < ranks_ && (distance & bit) == 0) bit *= 2;
    return bit;
  }

  /// The streams of all ranks are counted, since no rank has the most of them for a simple reason.
  void set_maxima(Plan& plan) const {
    std::vector<int> in(static_cast<std::size_t>(ranks_), 0);
    std::vector<int> out(static_cast<std::size_t>(ranks_), 0);
    const auto join = [&](int from, int to) {
      ++out[static_cast<std::size_t>(from)];
      ++in[static_cast<std::size_t>(to)];
    };
    for (int number = 0; number < leaves_.first_subtree(ranks_); ++number) {
      const LeafSubtree& here = subtree(number);
      if (here.parent >= 0 && up_of(number).turn.position == 0) join(here.rank, subtree(here.parent).rank);
    }
    if (spreads_ && ranks_ > 1) {
      join(top_, top_);
      for (int distance = 1; distance < ranks_; ++distance) join(rank_at(distance & (distance - 1)), rank_at(distance));
    } else if (!spreads_ && top_ != request_.root) {
      join(top_, request_.root);
    }
    plan.in_streams_max = *std::max_element(in.begin(), in.end());
    plan.out_streams_max = *std::max_element(out.begin(), out.end());
  }

  const PlanRequest& request_;
  const LeafIntervals& leaves_;
  const int rank_;
  const int ranks_;
  const int top_;  ///< the rank of leaf 0
  const bool spreads_;
  PlanBuilder builder_;
};

}  // namespace

Plan leaf_tree_plan(const PlanRequest& request, int rank) { return LeafTree(request, rank).make(); }

}  // namespace torii
