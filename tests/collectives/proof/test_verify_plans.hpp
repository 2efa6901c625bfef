// SPDX-License-Identifier: Apache-2.0
// Small plan sets made by hand, right ones and the means to break them, and the requests on which whole rows are tried.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collectives/selection/catalogue.hpp"
#include "runtime/plan/plan.hpp"

namespace torii::tests {

/// Collects streams and flows of a plan set; maxima are filled in by finish().
class PlanSet {
 public:
  PlanSet(Collective collective, int ranks, int blocks = 1) {
    request.collective = collective;
    request.topology = Topology::node(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      Plan plan;
      plan.rank = rank;
      plan.ranks = ranks;
      plan.blocks = blocks;
      plans.push_back(plan);
    }
  }

  struct Ends {
    StreamEnd out;
    StreamEnd in;
  };
  Ends stream(int sender, int receiver, Stream stream = {}) {
    Plan& from = plans[static_cast<std::size_t>(sender)];
    Plan& to = plans[static_cast<std::size_t>(receiver)];
    const Ends ends = {{static_cast<std::uint16_t>(from.out.size()), 0}, {static_cast<std::uint16_t>(to.in.size()), 0}};
    stream.peer = receiver;
    from.out.push_back(stream);
    stream.peer = sender;
    to.in.push_back(stream);
    return ends;
  }
  /// Adds a flow to a lane, which is made when it is new.
  Flow& flow(int rank, std::size_t lane, Flow flow) {
    std::vector<Lane>& lanes = plans[static_cast<std::size_t>(rank)].lanes;
    while (lanes.size() <= lane) lanes.push_back({{}, 2});
    lanes[lane].flows.push_back(std::move(flow));
    return lanes[lane].flows.back();
  }
  PlanSet& finish() {
    int in_most = 0;
    int out_most = 0;
    for (const Plan& plan : plans) {
      in_most = std::max(in_most, static_cast<int>(plan.in.size()));
      out_most = std::max(out_most, static_cast<int>(plan.out.size()));
    }
    for (Plan& plan : plans) {
      plan.in_streams_max = in_most;
      plan.out_streams_max = out_most;
    }
    return *this;
  }

  PlanRequest request;
  std::vector<Plan> plans;
};

inline Walk at_block(int block) { return {block, 1, 1, block + 1}; }
inline StreamEnd own() { return {}; }

/// Allreduce of two ranks: each sends its vector to the other and both combine in rank order.
inline PlanSet exchange() {
  PlanSet set(Collective::allreduce, 2);
  const auto there = set.stream(0, 1);
  const auto back = set.stream(1, 0);
  set.flow(0, 0, {{}, {own()}, false, {there.out}, Fold::left, "give"});
  set.flow(0, 0, {{}, {own(), back.in}, true, {}, Fold::left, "combine"});
  set.flow(1, 0, {{}, {own()}, false, {back.out}, Fold::left, "give"});
  set.flow(1, 0, {{}, {there.in, own()}, true, {}, Fold::left, "combine"});
  return set.finish();
}

/// Broadcast along 0 -> 1 -> 2.
inline PlanSet chain() {
  PlanSet set(Collective::broadcast, 3);
  const auto first = set.stream(0, 1);
  const auto second = set.stream(1, 2);
  set.flow(0, 0, {{}, {own()}, false, {first.out}, Fold::left, "send"});
  set.flow(1, 0, {{}, {first.in}, true, {second.out}, Fold::left, "pass on"});
  set.flow(2, 0, {{}, {second.in}, true, {}, Fold::left, "take"});
  return set.finish();
}

/// Allreduce of two ranks in place: each lets one half be read, reduces the other, and writes it into the peer's
/// result.
inline PlanSet halves(bool is_awaited) {
  PlanSet set(Collective::allreduce, 2, 2);
  Stream read;
  read.delivery = Delivery::read_in_place;
  read.is_awaited = is_awaited;
  Stream written;
  written.delivery = Delivery::write_in_place;
  written.tag = 1;
  PlanSet::Ends reads[2] = {set.stream(0, 1, read), set.stream(1, 0, read)};
  PlanSet::Ends writes[2] = {set.stream(0, 1, written), set.stream(1, 0, written)};
  for (int rank = 0; rank < 2; ++rank) {
    const int peer = 1 - rank;
    const StreamEnd theirs = reads[peer].in;
    set.flow(rank, 0, {at_block(peer), {own()}, false, {reads[rank].out}, Fold::left, "give"});
    const std::vector<StreamEnd> in_rank_order = rank == 0 ? std::vector{own(), theirs} : std::vector{theirs, own()};
    set.flow(rank, 0, {at_block(rank), in_rank_order, true, {writes[rank].out}, Fold::left, "reduce"});
    set.flow(rank, 0, {at_block(peer), {writes[peer].in}, true, {}, Fold::left, "take"});
  }
  return set.finish();
}

/// Allreduce along a chain 2 -> 1 -> 0 and back, up and down in lanes of their own with a hand-over at the root.
inline PlanSet up_and_down() {
  PlanSet set(Collective::allreduce, 3);
  Stream down;
  down.tag = 1;
  Stream local;
  local.delivery = Delivery::local;
  const auto up2 = set.stream(2, 1);
  const auto up1 = set.stream(1, 0);
  const auto turn = set.stream(0, 0, local);
  const auto down1 = set.stream(0, 1, down);
  const auto down2 = set.stream(1, 2, down);
  set.flow(2, 0, {{}, {own()}, false, {up2.out}, Fold::left, "up tree 0"});
  set.flow(1, 0, {{}, {own(), up2.in}, false, {up1.out}, Fold::left, "up tree 0"});
  set.flow(0, 0, {{}, {own(), up1.in}, true, {turn.out}, Fold::left, "up tree 0"});
  set.flow(0, 1, {{}, {turn.in}, false, {down1.out}, Fold::left, "down tree 0"});
  set.flow(1, 1, {{}, {down1.in}, true, {down2.out}, Fold::left, "down tree 0"});
  set.flow(2, 1, {{}, {down2.in}, true, {}, Fold::left, "down tree 0"});
  return set.finish();
}

inline std::string describe(const PlanRequest& request) {
  std::string text = std::string(name(request.collective)) + " " + request.topology.text() + " ranks " +
                     std::to_string(request.topology.ranks()) + " root " + std::to_string(request.root) + " " +
                     std::string(name(request.determinism)) + " slots " + std::to_string(request.tuning.slots) +
                     " window " + std::to_string(request.tuning.window);
  if (request.tuning.one_shot) text += " one_shot";
  if (request.wide_wire) text += " wide";
  return text;
}

inline constexpr Collective kCollectives[] = {Collective::barrier,   Collective::broadcast,  Collective::reduce,
                                              Collective::allreduce, Collective::all_gather, Collective::reduce_scatter,
                                              Collective::alltoall,  Collective::scatter,    Collective::gather,
                                              Collective::scan,      Collective::exscan};

/// Every collective, several roots, both determinism levels, wide and narrow, on one topology with one tuning.
inline std::vector<PlanRequest> requests_on(const Topology& topology, const Tuning& tuning) {
  std::vector<PlanRequest> requests;
  std::vector<int> roots = {0};
  if (topology.ranks() > 1) roots.push_back(topology.ranks() - 1);
  if (topology.ranks() > 3) roots.push_back(topology.ranks() / 2);
  for (const Collective collective : kCollectives) {
    for (const int root : roots) {
      if (root != 0 && !has_root(collective)) continue;
      for (const Determinism determinism : {Determinism::run, Determinism::canonical}) {
        for (const bool wide : {false, true}) {
          if (wide && !combines(collective)) continue;
          requests.push_back({collective, topology, root, determinism, wide, tuning});
        }
      }
    }
  }
  return requests;
}

/// Broadcast where the root's vector is read in place.
inline PlanSet lent_broadcast(bool is_awaited) {
  PlanSet set(Collective::broadcast, 2);
  Stream read;
  read.delivery = Delivery::read_in_place;
  read.is_awaited = is_awaited;
  const auto ends = set.stream(0, 1, read);
  set.flow(0, 0, {{}, {own()}, false, {ends.out}, Fold::left, "give"});
  set.flow(1, 0, {{}, {ends.in}, true, {}, Fold::left, "take"});
  return set.finish();
}

}  // namespace torii::tests
