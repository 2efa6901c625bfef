// SPDX-License-Identifier: Apache-2.0
// Up and down a tree.
#include "collectives/tree_flows.hpp"

namespace torii {
namespace {

class TreeFlows {
 public:
  TreeFlows(PlanBuilder& builder, const PlanRequest& request, int blocks, const TreePlace& place)
      : builder_(builder), request_(request), walk_(blocks_from(place.number, 1, blocks)), place_(place) {}

  void add() {
    switch (request_.collective) {
      case Collective::barrier:
        meet();
        break;
      case Collective::broadcast:
        if (is_root()) {
          down({.sources = {{}}});
        } else {
          down({.sources = {builder_.in(down_stream(place_.parent))}, .keep = true});
        }
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

  Stream up_stream(int peer) const { return {.peer = peer, .tag = 2 * place_.number, .wide = request_.wide_wire}; }
  Stream down_stream(int peer) const { return {.peer = peer, .tag = 2 * place_.number + 1, .carriage = place_.down}; }

  /// All tokens go up, then all come down, in one lane. A rank enters again only after it was let go, which the root
  /// does only after all have entered, so no token meets a slot that is in use.
  void meet() {
    const bool credits = !credits_are_implied(request_.tuning, 1);
    const auto token = [&](int peer, bool is_up) {
      return Stream{.peer = peer, .tag = 2 * place_.number + (is_up ? 0 : 1), .credits = credits};
    };
    Flow enter = {.walk = walk_, .label = place_.up_label};
    Flow leave = {.walk = walk_, .label = place_.down_label};
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

  Flow combine() {
    Flow flow = {.walk = walk_, .sources = {{}}, .label = place_.up_label};
    for (const int child : place_.children) flow.sources.push_back(builder_.in(up_stream(child)));
    if (!is_root()) flow.targets = {builder_.out(up_stream(place_.parent))};
    return flow;
  }

  void up() {
    Flow flow = combine();
    if (is_root() && place_.deliver_to < 0) flow.keep = true;
    if (is_root() && place_.deliver_to >= 0) {
      flow.targets = {builder_.out({.peer = place_.deliver_to, .tag = kDeliveryTag})};
    }
    builder_.lane().flows = {std::move(flow)};
  }

  void down(Flow flow) {
    flow.walk = walk_;
    flow.label = place_.down_label;
    for (auto child = place_.children.rbegin(); child != place_.children.rend(); ++child) {
      flow.targets.push_back(builder_.out(down_stream(*child)));
    }
    if (flow.keep || !flow.targets.empty()) builder_.lane().flows = {std::move(flow)};
  }

  void up_and_down() {
    Flow flow = combine();
    if (!is_root()) {
      builder_.lane().flows = {std::move(flow)};
      down({.sources = {builder_.in(down_stream(place_.parent))}, .keep = true});
      return;
    }
    flow.keep = true;
    if (place_.children.empty()) {
      builder_.lane().flows = {std::move(flow)};
      return;
    }
    // What goes down is rounded and stands in the result, wide partial results or not.
    const Stream turn = {.peer = builder_.rank(), .tag = 2 * place_.number, .carriage = Carriage::handover};
    flow.targets = {builder_.out(turn)};
    builder_.lane().flows = {std::move(flow)};
    down({.sources = {builder_.in(turn)}});
  }

  PlanBuilder& builder_;
  const PlanRequest& request_;
  const Walk walk_;
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

}  // namespace torii
