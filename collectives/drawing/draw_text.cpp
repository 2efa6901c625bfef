// SPDX-License-Identifier: Apache-2.0
// Plans as text.
#include <algorithm>

#include "collectives/drawing/draw.hpp"

namespace torii {
namespace {

/// The names of a flow's peers, by the first word of its label.
struct Roles {
  std::string_view label_start;
  std::string_view source;
  std::string_view target;
};
constexpr Roles kRoles[] = {{"up", "child", "parent"}, {"down", "parent", "child"}, {"", "rank", "rank"}};

const Roles& roles_of(std::string_view label) {
  return *std::find_if(std::begin(kRoles), std::end(kRoles),
                       [&](const Roles& roles) { return label.starts_with(roles.label_start); });
}

std::string peer_text(std::string_view role, const Stream& stream, int rank) {
  if (stream.delivery == Delivery::local) return "local";
  std::string text = stream.peer == rank ? "own slot" : std::string(role) + " " + std::to_string(stream.peer);
  if (stream.delivery == Delivery::read_in_place) text += " (read in place)";
  if (stream.delivery == Delivery::write_in_place) text += " (write in place)";
  if (stream.wide) text += " (wide)";
  if (stream.bundle > 1) text += " (bundle of " + std::to_string(stream.bundle) + ")";
  return text;
}

std::string blocks_text(const Walk& walk) {
  if (walk.count == 1) return "block " + std::to_string(walk.block(0));
  constexpr int kBlocksShown = 8;
  std::string text = "blocks";
  for (int place = 0; place < std::min(walk.count, kBlocksShown); ++place)
    text += " " + std::to_string(walk.block(place));
  if (walk.count > kBlocksShown)
    text += " ... " + std::to_string(walk.block(walk.count - 1)) + " (" + std::to_string(walk.count) + ")";
  return text;
}

/// "own"; the operands of a rank with several are "own", "own 1", "own 2", ...
std::string own_text(int operand) { return operand == 0 ? "own" : "own " + std::to_string(operand); }

std::string flow_line(const Plan& plan, const Flow& flow) {
  const Roles& roles = roles_of(flow.label);
  std::string sources;
  for (const StreamEnd& source : flow.sources) {
    if (!sources.empty()) sources += " + ";
    sources +=
        source.stream == kOwn ? own_text(source.position) : peer_text(roles.source, plan.in[source.stream], plan.rank);
  }
  if (sources.empty()) sources = "token";
  if (flow.fold == Fold::canonical) sources = "canonical(" + sources + ")";
  std::string targets = flow.keep ? "keep" : "";
  for (const StreamEnd& target : flow.targets) {
    if (!targets.empty()) targets += ", ";
    targets += peer_text(roles.target, plan.out[target.stream], plan.rank);
  }
  const std::string label(flow.label.empty() ? "flow" : flow.label);
  return label + ": " + sources + (targets.empty() ? "" : " -> " + targets) + ", " + blocks_text(flow.walk);
}

std::string peers_text(bool all, int only) { return all ? "all" : "rank " + std::to_string(only); }

/// "pairwise exchange: all to all, rank + 1, rank + 2, ..., 4 in flight; to 1 2 3; from 3 2 1"
std::string exchange_line(const Plan& plan) {
  constexpr int kEntriesShown = 8;
  const PairwiseExchange& exchange = plan.exchange;
  std::string text = "pairwise exchange: " + peers_text(exchange.from < 0, exchange.from) + " to " +
                     peers_text(exchange.to < 0, exchange.to) + ", " + std::string(exchange.order->name()) + ", " +
                     std::to_string(exchange.in_flight) + " in flight";
  const auto add = [&](const char* what, bool takes_part, auto&& peer_at, auto&& other_takes_part) {
    if (!takes_part) return;
    std::string peers;
    int shown = 0;
    for (int transfer = 0; transfer < exchange.order->transfers(); ++transfer) {
      const int peer = peer_at(transfer);
      if (!other_takes_part(peer)) continue;
      if (++shown <= kEntriesShown) peers += " " + std::to_string(peer);
    }
    if (shown > kEntriesShown) peers += " ... (" + std::to_string(shown) + ")";
    if (shown != 0) text += what + peers;
  };
  add(
      "; to", exchange.sends(plan.rank), [&](int transfer) { return exchange.order->receiver(plan.rank, transfer); },
      [&](int peer) { return exchange.takes(peer); });
  add(
      "; from", exchange.takes(plan.rank), [&](int transfer) { return exchange.order->sender(plan.rank, transfer); },
      [&](int peer) { return exchange.sends(peer); });
  return text;
}

std::string rank_text(const Plan& plan) {
  std::string text = "rank " + std::to_string(plan.rank) + "\n";
  if (plan.exchange.exists()) text += "  " + exchange_line(plan) + "\n";
  for (std::size_t lane = 0; lane < plan.lanes.size(); ++lane) {
    text += "  lane " + std::to_string(lane) + ", window " + std::to_string(plan.lanes[lane].window) + "\n";
    for (const Flow& flow : plan.lanes[lane].flows) text += "    " + flow_line(plan, flow) + "\n";
  }
  return text;
}

}  // namespace

std::string draw_text(const PlanRequest& request, std::span<const Plan> plans) {
  std::string text = std::string(name(request.collective)) + " on " + request.topology.text() + ", " +
                     std::to_string(request.topology.ranks()) + " ranks";
  if (has_root(request.collective)) text += ", root " + std::to_string(request.root);
  if (!plans.empty()) {
    const Plan& plan = plans.front();
    text += ", " + std::to_string(plan.blocks) + (plan.blocks == 1 ? " block" : " blocks") +
            (plan.dealing == Dealing::block_cyclic ? " block-cyclic" : "") + ", " + std::to_string(plan.slots) +
            " slots per stream, segments of " + std::to_string(request.tuning.segment_bytes) + " bytes";
  }
  text += "\n";
  for (const Plan& plan : plans) text += rank_text(plan);
  return text;
}

std::string draw_text(const PlanRequest& request, const Plan& plan) { return draw_text(request, std::span(&plan, 1)); }

}  // namespace torii
