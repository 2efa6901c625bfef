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

Plan expand(const Plan& plan, Carriage carriage) {
  Plan expanded = plan;
  expanded.sweep = {};
  const Sweep& sweep = plan.sweep;
  const int rank = plan.rank;
  const Stream stream = {.peer = 0, .carriage = carriage};
  if (sweep.sends(rank) && sweep.takes(rank)) {
    Flow own = {.walk = one_block(plan, rank), .sources = {{}}, .keep = true, .label = "own block"};
    expanded.lanes.push_back(lane_of(std::move(own)));
  }
  for (int peer = 0; peer < plan.ranks; ++peer) {
    if (peer == rank) continue;
    if (sweep.sends(rank) && sweep.takes(peer)) {
      expanded.out.push_back(stream);
      expanded.out.back().peer = peer;
    }
    if (sweep.takes(rank) && sweep.sends(peer)) {
      expanded.in.push_back(stream);
      expanded.in.back().peer = peer;
    }
  }
  for (int transfer = 0; transfer < sweep.order->entries(); ++transfer) {
    const int receiver = sweep.order->receiver(rank, transfer);
    const int sender = sweep.order->sender(rank, transfer);
    if (sweep.sends(rank) && sweep.takes(receiver)) {
      const StreamEnd end = {static_cast<std::uint16_t>(sweep.out_stream(rank, receiver)), 0};
      expanded.out[end.stream].ties = sweep.order->ties(rank, transfer);
      const Walk walk = one_block(plan, sweep.to >= 0 ? rank : receiver);
      expanded.lanes.push_back(lane_of({.walk = walk, .sources = {{}}, .targets = {end}, .label = "send"}));
    }
    if (sweep.takes(rank) && sweep.sends(sender)) {
      const StreamEnd end = {static_cast<std::uint16_t>(sweep.in_stream(rank, sender)), 0};
      expanded.in[end.stream].ties = sweep.order->ties(sender, transfer);
      const Walk walk = one_block(plan, sweep.from >= 0 ? rank : sender);
      expanded.lanes.push_back(lane_of({.walk = walk, .sources = {end}, .keep = true, .label = "take"}));
    }
  }
  return expanded;
}

}  // namespace

std::vector<Plan> expand_exchanges(std::span<const Plan> plans, Carriage carriage) {
  std::vector<Plan> expanded;
  expanded.reserve(plans.size());
  for (const Plan& plan : plans) expanded.push_back(plan.sweep.exists() ? expand(plan, carriage) : plan);
  return expanded;
}

}  // namespace torii
