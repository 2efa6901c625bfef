// SPDX-License-Identifier: Apache-2.0
// Up and down a tree.
#include "collectives/building/tree_flows.hpp"

#include <algorithm>
#include <numeric>

namespace torii {
namespace {

class TreeFlows {
 public:
  TreeFlows(PlanBuilder& builder, const PlanRequest& request, int blocks, const TreePlace& place)
      : builder_(builder),
        request_(request),
        rank_(builder.rank()),
        blocks_(blocks),
        mates_(place.mates.empty() ? std::span(&rank_, 1) : place.mates),
        place_(place) {}

  void add() {
    switch (request_.collective) {
      case Collective::barrier:
        meet();
        break;
      case Collective::broadcast:
        broadcast();
        break;
      case Collective::reduce:
        up();
        break;
      default:
        up_and_down();
    }
  }

 private:
  bool is_root() const { return place_.parent < 0; }
  bool is_alone() const { return mates_.size() == 1; }
  int slices() const { return static_cast<int>(mates_.size()); }
  Walk slice_of(int mate) const {
    const auto slice = static_cast<int>(std::find(mates_.begin(), mates_.end(), mate) - mates_.begin());
    return blocks_from(place_.number * slices() + slice, 1, blocks_);
  }
  Walk all_slices() const { return blocks_from(place_.number * slices(), slices(), blocks_); }

  Stream up_stream(int peer) const { return {.peer = peer, .tag = 2 * place_.number, .wide = request_.wide_wire}; }
  Stream down_stream(int peer) const { return {.peer = peer, .tag = 2 * place_.number + 1, .delivery = place_.down}; }
  /// Operands within the node.
  Stream give_stream(int mate, int messages) const {
    return {
        .peer = mate, .tag = 2 * place_.number, .messages_per_segment = messages, .delivery = Delivery::read_in_place};
  }

  /// All messages go up, then all come down, in one lane.
  void meet() {
    const auto token = [&](int peer, bool is_up) {
      return Stream{.peer = peer, .tag = 2 * place_.number + (is_up ? 0 : 1)};
    };
    Flow enter = {.label = place_.up_label};
    Flow leave = {.label = place_.down_label};
    for (const int child : place_.children) enter.sources.push_back(builder_.in(token(child, true)));
    for (const int child : place_.children) leave.targets.push_back(builder_.out(token(child, false)));
    if (!is_root()) {
      enter.targets = {builder_.out(token(place_.parent, true))};
      leave.sources = {builder_.in(token(place_.parent, false))};
    } else if (place_.children.empty()) {
      return;
    }
    builder_.lane().flows = {std::move(enter), std::move(leave)};
  }

  /// The root's mates read all slices from it, and each sends its own on to the other nodes.
  void broadcast() {
    if (rank_ == request_.root) {
      if (!is_alone()) lend_all();
      down({.sources = {{}}}, false);
    } else if (place_.taken_from >= 0) {
      take_all(builder_.in(give_stream(place_.taken_from, slices())));
    } else {
      down({.sources = {builder_.in(down_stream(place_.parent))}, .keep = true}, true);
    }
  }

  void lend_all() {
    Flow flow = {.walk = all_slices(), .sources = {{}}, .label = "give"};
    for (const int mate : mates_) {
      if (mate != rank_) flow.targets.push_back(builder_.out(give_stream(mate, slices())));
    }
    builder_.lane().flows = {std::move(flow)};
  }

  void take_all(StreamEnd from) {
    std::vector<Flow> flows;
    for (const int mate : mates_) {
      Flow flow = {.walk = slice_of(mate), .sources = {from}, .keep = true, .label = "take"};
      if (mate == rank_) add_children(flow);
      flows.push_back(std::move(flow));
      from = at(from, 1);
    }
    builder_.lane().flows = std::move(flows);
  }

  /// Gives the operands of other slices to their mates, then combines those of the own slice.
  std::vector<Flow> combine() {
    std::vector<Flow> flows;
    Flow flow = {.walk = slice_of(rank_), .label = place_.up_label};
    for (const int mate : mates_) {
      if (mate == rank_) {
        flow.sources.push_back({});
        continue;
      }
      flow.sources.push_back(builder_.in(give_stream(mate, 1)));
      flows.push_back(
          {.walk = slice_of(mate), .sources = {{}}, .targets = {builder_.out(give_stream(mate, 1))}, .label = "give"});
    }
    for (const int child : place_.children) flow.sources.push_back(builder_.in(up_stream(child)));
    if (!is_root()) flow.targets = {builder_.out(up_stream(place_.parent))};
    flows.push_back(std::move(flow));
    return flows;
  }

  void up() {
    std::vector<Flow> flows = combine();
    if (is_root() && place_.deliver_to < 0) flows.back().keep = true;
    if (is_root() && place_.deliver_to >= 0) {
      const bool is_mate = std::find(mates_.begin(), mates_.end(), place_.deliver_to) != mates_.end();
      flows.back().targets = {builder_.out(is_mate ? down_stream(place_.deliver_to)
                                                   : Stream{.peer = place_.deliver_to, .tag = kDeliveryTag})};
    }
    if (rank_ == request_.root && is_root()) add_takes(flows);
    builder_.lane().flows = std::move(flows);
  }

  void add_children(Flow& flow) {
    for (auto child = place_.children.rbegin(); child != place_.children.rend(); ++child) {
      flow.targets.push_back(builder_.out(down_stream(*child)));
    }
  }
  void add_mates(Flow& flow) {
    for (const int mate : mates_) {
      if (mate != rank_) flow.targets.push_back(builder_.out(down_stream(mate)));
    }
  }
  /// Takes the slices that the mates have finished.
  void add_takes(std::vector<Flow>& flows) {
    for (const int mate : mates_) {
      if (mate == rank_) continue;
      const StreamEnd from = builder_.in(down_stream(mate));
      flows.push_back({.walk = slice_of(mate), .sources = {from}, .keep = true, .label = "take"});
    }
  }

  void down(Flow flow, bool with_mates) {
    flow.walk = slice_of(rank_);
    flow.label = place_.down_label;
    add_children(flow);
    if (with_mates) add_mates(flow);
    std::vector<Flow> flows;
    if (flow.keep || !flow.targets.empty()) flows.push_back(std::move(flow));
    if (with_mates) add_takes(flows);
    builder_.lane().flows = std::move(flows);
  }

  void up_and_down() {
    std::vector<Flow> flows = combine();
    if (!is_root()) {
      builder_.lane().flows = std::move(flows);
      down({.sources = {builder_.in(down_stream(place_.parent))}, .keep = true}, true);
      return;
    }
    flows.back().keep = true;
    if (place_.children.empty() && is_alone()) {
      builder_.lane().flows = std::move(flows);
      return;
    }
    // The value that goes down is rounded and is in the result, even if partial results are wide.
    const Stream turn = {.peer = rank_, .tag = 2 * place_.number, .delivery = Delivery::local};
    flows.back().targets = {builder_.out(turn)};
    builder_.lane().flows = std::move(flows);
    down({.sources = {builder_.in(turn)}}, true);
  }

  PlanBuilder& builder_;
  const PlanRequest& request_;
  const int rank_;
  const int blocks_;
  const std::span<const int> mates_;
  const TreePlace& place_;
};

}  // namespace

void add_tree_flows(PlanBuilder& builder, const PlanRequest& request, int blocks, const TreePlace& place) {
  TreeFlows(builder, request, blocks, place).add();
}

void add_delivery(PlanBuilder& builder, int from) {
  const StreamEnd delivered = builder.in({.peer = from, .tag = kDeliveryTag});
  builder.lane().flows = {{.sources = {delivered}, .keep = true, .label = "deliver"}};
}

Plan chain_plan(const PlanRequest& request, int rank, const std::vector<int>& ranks, std::string_view up_label,
                std::string_view down_label) {
  PlanBuilder builder(request, rank, Dealing::block, 1);
  const auto here = std::find(ranks.begin(), ranks.end(), rank);
  add_tree_flows(builder, request, 1,
                 {.parent = here == ranks.begin() ? -1 : here[-1],
                  .children = std::span(here + 1, here + 1 == ranks.end() ? 0 : 1),
                  .down = Delivery::write_in_place,
                  .up_label = up_label,
                  .down_label = down_label});
  Plan plan = builder.take();
  plan.in_streams_max = plan.out_streams_max = plan.ranks == 1 ? 0 : 1;
  return plan;
}

ExpressionId chain_order(const PlanRequest& request, const std::vector<int>& ranks, ExpressionPool& pool) {
  ExpressionId value = pool.leaf(ranks.back());
  for (auto rank = ranks.rbegin() + 1; rank < ranks.rend(); ++rank) {
    const ExpressionId operands[] = {pool.leaf(*rank), value};
    value = pool.fold(operands, rank + 1 == ranks.rend() || !request.wide_wire);
  }
  return value;
}

std::vector<int> ranks_from_root(const PlanRequest& request) {
  std::vector<int> ranks(static_cast<std::size_t>(request.topology.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::rotate(ranks.begin(), ranks.begin() + request.root, ranks.end());
  return ranks;
}

}  // namespace torii
