// SPDX-License-Identifier: Apache-2.0
// floyd: alltoall of short blocks in a few rounds. Blocks for many ranks travel together. They are sorted on the way as
// a radix sort does, digit after digit of the way that they have to go.
//
//   4 ranks, radix 2: each sends what differs from it in the last bit, then what differs in the bit before
//
//   rank 0  blocks for 0 1 2 3        1 and 3 -> rank 1                     2 (its own and rank 1's) -> rank 2
//   rank 1  blocks for 0 1 2 3        0 and 2 -> rank 0                     3 (its own and rank 0's) -> rank 3
//
// The way of a block is the distance j from its sender to its receiver. If ranks and radix are powers of two, j is
// sender xor receiver; otherwise j is receiver - sender modulo the ranks. The way is made digit by digit, the lowest
// first: digit i of value x is a hop over x radix^i. All blocks with this digit go in one message, a bundle. Each hop
// copies a block once, from the slot in which it came (or the input) into the slot of the next rank (or the result).
// Nothing is packed or unpacked besides. Results are stored after everything has been sent.
//
// Source: A. Tsukada, T. Tsuda, Optimizing Data Permutation on Highly Parallel Computers (in Japanese), section 5, for
// powers of two; J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, IEEE TPDS 8(11), 1997, for any number of ranks
// and any radix.
// Cost on P ranks, radix r, blocks of n bytes: ceil(log_r P) rounds and at most (r - 1) ceil(log_r P) messages. If P is
// r^k, (r - 1) P/r log_r P blocks go out of and into every rank. Radix P is direct: one round, P - 1 messages.
#include <algorithm>
#include <cstdio>

#include "collectives/building/floyd_hops.hpp"
#include "collectives/building/floyd_model.hpp"
#include "collectives/building/plan_builder.hpp"
#include "runtime/base/tuned_constants.hpp"

namespace torii {
namespace {

/// Blocks are counted within a bundle, and hops within a plan's streams, in 16 bits.
constexpr int kRanksMax = 65535;
/// Beyond these ranks direct has no list of single messages; its pairwise exchange would settle every pair by itself.
constexpr int kListedRanksMax = 256;
/// Longer blocks do not travel together.
constexpr auto kBlockBytesMax = tuned<std::size_t>("floyd.block_bytes_max");

class FloydPlan {
 public:
  FloydPlan(const PlanRequest& request, int rank)
      : request_(request),
        rank_(rank),
        hops_(request.topology.ranks(), request.tuning.radix),
        builder_(request, rank, Dealing::block, hops_.ranks()),
        writer_(builder_.lane(), hops_.ranks()),
        came_(static_cast<std::size_t>(hops_.ranks())) {}

  Plan make() {
    builder_.balance_ties();
    for (const FloydHops::Hop& hop : hops_.all()) send(hop);
    writer_.add(rank_, {.sources = {{}}, .keep = true, .label = "own block"});
    for (const FloydHops::Hop& hop : hops_.all()) take(hop);
    Plan plan = builder_.take();
    plan.in_streams_max = plan.out_streams_max = static_cast<int>(hops_.all().size());
    for (const FloydHops::Hop& hop : hops_.all()) {
      plan.bundle_max = std::max(plan.bundle_max, static_cast<int>(hop.ways.size()));
    }
    return plan;
  }

 private:
  Stream stream(const FloydHops::Hop& hop, int peer) const {
    const int blocks = static_cast<int>(hop.ways.size());
    return {.peer = peer, .tag = hop.number, .messages_per_segment = blocks, .bundle = blocks};
  }

  /// Sends the bundle of a hop, and notes where the bundle that comes by the same hop will be.
  void send(const FloydHops::Hop& hop) {
    const StreamEnd out = builder_.out(stream(hop, hops_.to(rank_, hop.distance)));
    const StreamEnd in = builder_.in(stream(hop, hops_.from(rank_, hop.distance)));
    for (std::size_t i = 0; i < hop.ways.size(); ++i) {
      const int way = hop.ways[i];
      const int before = hops_.gone_before(way, hop);
      const StreamEnd target = at(out, static_cast<int>(i));
      const int receiver = hops_.to(rank_, way - before);
      if (before == 0) {
        writer_.add(receiver, {.sources = {{}}, .targets = {target}, .label = "send"});
      } else {
        writer_.add(receiver,
                    {.sources = {came_[static_cast<std::size_t>(way)]}, .targets = {target}, .label = "pass on"});
      }
    }
    for (std::size_t i = 0; i < hop.ways.size(); ++i) {
      came_[static_cast<std::size_t>(hop.ways[i])] = at(in, static_cast<int>(i));
    }
  }

  /// Takes those of a hop's blocks for which it is the last one.
  void take(const FloydHops::Hop& hop) {
    for (const int way : hop.ways) {
      if (!hops_.ends_with(way, hop)) continue;
      writer_.add(hops_.from(rank_, way),
                  {.sources = {came_[static_cast<std::size_t>(way)]}, .keep = true, .label = "take"});
    }
  }

  const PlanRequest& request_;
  const int rank_;
  const FloydHops hops_;
  PlanBuilder builder_;
  StepWriter writer_;
  std::vector<StreamEnd> came_;  ///< by way: the place of the block that has come the digits so far
};

std::string why_not(const PlanRequest& request) {
  std::string reason = why_not_any("floyd", {Collective::alltoall}, request);
  if (!reason.empty()) return reason;
  const int ranks = request.topology.ranks();
  if (ranks > kRanksMax) {
    return "it is for up to " + std::to_string(kRanksMax) + " ranks, there are " + std::to_string(ranks);
  }
  if (request.tuning.radix < 2) {
    return "the radix is " + std::to_string(request.tuning.radix) + "; it must be at least 2";
  }
  return "";
}

Plan plan(const PlanRequest& request, int rank) { return FloydPlan(request, rank).make(); }

std::size_t block_bytes(const EstimateRequest& request) {
  return request.bytes / static_cast<std::size_t>(request.plan.topology.ranks());
}

/// Whether rounds may be quicker than a message per pair. Within a node they have no latency to save: a message is a
/// cache line, and a round waits for another rank's CPU time.
bool may_be_quicker(const EstimateRequest& request) {
  const Topology& topology = request.plan.topology;
  const bool is_far = request.several_nodes || topology.kind() == Topology::Kind::torus;
  return request.plan.collective == Collective::alltoall && topology.ranks() > 2 &&
         (is_far || topology.ranks() > kListedRanksMax);
}

/// A tune row does not keep floyd from an estimate: the rows for alltoall were made for messages per pair.
CostEstimate estimate(const EstimateRequest& request) {
  CostEstimate estimate = {.tuning = {.segment_bytes = 4096, .slots = 4, .window = 1, .radix = 0}};
  if (!may_be_quicker(request)) return estimate;
  estimate.holds = {request.bytes, request.bytes};
  if (block_bytes(request) > kBlockBytesMax) {
    estimate.holds = {(kBlockBytesMax + 1) * static_cast<std::size_t>(request.plan.topology.ranks()), SIZE_MAX};
    return estimate;
  }
  const Topology& topology = request.plan.topology;
  const std::size_t bytes = block_bytes(request);
  estimate.tuning.radix = floyd_radix(topology, bytes);
  const double together_s = floyd_seconds(floyd_cost(topology, estimate.tuning.radix), bytes);
  const double apart_s = message_per_pair_seconds(topology, bytes);
  if (together_s < apart_s) estimate.seconds = together_s;
  char text[160];
  std::snprintf(text, sizeof(text), "by the model of rounds: floyd of radix %d %.4g us, a message per pair %.4g us",
                estimate.tuning.radix, 1e6 * together_s, 1e6 * apart_s);
  estimate.why = text;
  return estimate;
}

CostEstimate complete(const EstimateRequest& request) {
  CostEstimate completed = {.tuning = request.plan.tuning};
  int& radix = completed.tuning.radix;
  if (radix == 0) radix = floyd_radix(request.plan.topology, block_bytes(request));
  return completed;
}

}  // namespace

extern const Algorithm kFloyd = {
    "floyd", "paraFLOYD; Tsukada, Tsuda, section 5, and Bruck, Ho, Kipnis, Upfal, Weathersby 1997",
    why_not, plan,
    nullptr, estimate,
    complete};

}  // namespace torii
