// SPDX-License-Identifier: Apache-2.0
// Writes pairwise exchanges out as flows.
#include "collectives/building/exchange_expansion.hpp"

#include <utility>

namespace torii {
namespace {

Lane lane_of(Flow flow) {
  Lane lane;
  lane.flows.push_back(std::move(flow));
  return lane;
}

Walk one_block(const Plan& plan, int block) { return {block, 1, 1, plan.blocks}; }

Plan expand(const Plan& plan, Delivery delivery) {
  Plan expanded = plan;
  expanded.exchange = {};
  const PairwiseExchange& exchange = plan.exchange;
  const int rank = plan.rank;
  const Stream stream = {.peer = 0, .delivery = delivery};
  if (exchange.sends(rank) && exchange.takes(rank)) {
    Flow own = {.walk = one_block(plan, rank), .sources = {{}}, .keep = true, .label = "own block"};
    expanded.lanes.push_back(lane_of(std::move(own)));
  }
  for (int peer = 0; peer < plan.ranks; ++peer) {
    if (peer == rank) continue;
    if (exchange.sends(rank) && exchange.takes(peer)) {
      expanded.out.push_back(stream);
      expanded.out.back().peer = peer;
    }
    if (exchange.takes(rank) && exchange.sends(peer)) {
      expanded.in.push_back(stream);
      expanded.in.back().peer = peer;
    }
  }
  for (int transfer = 0; transfer < exchange.order->transfers(); ++transfer) {
    const int receiver = exchange.order->receiver(rank, transfer);
    const int sender = exchange.order->sender(rank, transfer);
    if (exchange.sends(rank) && exchange.takes(receiver)) {
      const StreamEnd end = {static_cast<std::uint16_t>(exchange.out_stream(rank, receiver)), 0};
      expanded.out[end.stream].ties = exchange.order->ties(rank, transfer);
      const Walk walk = one_block(plan, exchange.to >= 0 ? rank : receiver);
      expanded.lanes.push_back(lane_of({.walk = walk, .sources = {{}}, .targets = {end}, .label = "send"}));
    }
    if (exchange.takes(rank) && exchange.sends(sender)) {
      const StreamEnd end = {static_cast<std::uint16_t>(exchange.in_stream(rank, sender)), 0};
      expanded.in[end.stream].ties = exchange.order->ties(sender, transfer);
      const Walk walk = one_block(plan, exchange.from >= 0 ? rank : sender);
      expanded.lanes.push_back(lane_of({.walk = walk, .sources = {end}, .keep = true, .label = "take"}));
    }
  }
  return expanded;
}

}  // namespace

std::vector<Plan> expand_exchanges(std::span<const Plan> plans, Delivery delivery) {
  std::vector<Plan> expanded;
  expanded.reserve(plans.size());
  for (const Plan& plan : plans) expanded.push_back(plan.exchange.exists() ? expand(plan, delivery) : plan);
  return expanded;
}

}  // namespace torii
