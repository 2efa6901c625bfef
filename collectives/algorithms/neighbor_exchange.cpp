// SPDX-License-Identifier: Apache-2.0
// neighbor_exchange: all_gather of an even number of ranks, each of which talks to its two neighbours by turns.
//
//   6 ranks: who meets, and the blocks that rank 0 takes
//
//   step 0   0-1  2-3  4-5      b1          a pair exchanges its own blocks
//   step 1   1-2  3-4  5-0      b5 b4       and passes both on: its own block and that of step 0
//   step 2   0-1  2-3  4-5      b2 b3       from now on a rank passes on what it took in the step before
//
// The blocks of ranks + 1, + 2, ... come from the rank above, those of ranks - 1, - 2, ... from the rank below. Each
// side has a lane of its own, so a block never waits for the other side.
//
// Source: J. Chen, L. Zhang, Y. Zhang, W. Yuan, Performance Evaluation of Allgather Algorithms on Terascale Linux
// Cluster with Fast Ethernet, HPC Asia 2005, section 2.
// Cost for blocks of n bytes on P ranks: P/2 steps, (P-1) n bytes out of and into each rank. P/2 blocks go to one
// neighbour and P/2 - 1 to the other.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <vector>

#include "collectives/building/steps.hpp"
#include "runtime/base/tuned_constants.hpp"

namespace torii {
namespace {

/// Blocks are counted within a segment's messages, in 16 bits.
constexpr int kRanksMax = 65536;

class NeighborPlan {
 public:
  NeighborPlan(const PlanRequest& request, int rank)
      : ranks_(request.topology.ranks()), rank_(rank), steps_(request, rank, ranks_) {}

  Plan make() {
    const std::vector<int> in[] = {taken(rank_, 1), taken(rank_, -1)};
    // The neighbours take what comes from the other side.
    const std::vector<int> out[] = {taken(at(-1), 1), taken(at(1), -1)};
    const Link from[] = {link(1, in[0]), link(-1, in[1])};
    const Link to[] = {link(-1, out[0]), link(1, out[1])};

    steps_.begin("own block", rank_).combine(Steps::own()).keep();
    for (const int way : {0, 1}) {
      if (!out[way].empty()) steps_.send(to[way]);
    }
    for (const int way : {0, 1}) {
      steps_.lane();
      for (std::size_t i = 0; i < in[way].size(); ++i) {
        steps_.begin("exchange", in[way][i]).combine(from[way]).keep();
        if (i + 1 < out[way].size()) steps_.send(to[way]);  // the first message is this rank's own block
      }
    }
    return steps_.take();
  }

 private:
  int at(int distance) const { return (rank_ + distance + ranks_) % ranks_; }

  /// The blocks that `rank` takes from its neighbour above (side 1) or below (-1): one in step 0, two in a later step.
  std::vector<int> taken(int rank, int side) const {
    std::vector<int> blocks;
    for (int step = 0; step < ranks_ / 2; ++step) {
      const bool meets = ((rank + step) % 2 == 0) == (side == 1);
      for (int i = 0; meets && i < (step == 0 ? 1 : 2); ++i) {
        const int distance = side * (static_cast<int>(blocks.size()) + 1);
        blocks.push_back((rank + distance + ranks_) % ranks_);
      }
    }
    return blocks;
  }

  Link link(int side, const std::vector<int>& blocks) const {
    return {{.peer = at(side), .delivery = Delivery::write_in_place}, blocks};
  }

  const int ranks_;
  const int rank_;
  Steps steps_;
};

/// With one slot, all ranks of a longer ring wait for their neighbours.
int slots_least(const PlanRequest& request) { return request.topology.ranks() > 4 ? 2 : 1; }

std::string why_not(const PlanRequest& request) {
  std::string reason = why_not_any("neighbor_exchange", {Collective::all_gather}, request);
  if (!reason.empty()) return reason;
  const int ranks = request.topology.ranks();
  if (ranks % 2 != 0 && ranks != 1) {
    return "neighbor_exchange pairs neighbours, so it needs an even number of ranks, there are " +
           std::to_string(ranks) + "; use ring";
  }
  if (ranks > kRanksMax) {
    return "neighbor_exchange is for up to " + std::to_string(kRanksMax) + " ranks, there are " + std::to_string(ranks);
  }
  if (request.tuning.slots < slots_least(request)) {
    return "slots is 1, but all ranks wait for their neighbours unless there are 2";
  }
  return "";
}

Plan plan(const PlanRequest& request, int rank) { return NeighborPlan(request, rank).make(); }

/// Whether each rank's neighbours are the ends of its only cables.
bool is_ring_of_links(const Topology& topology) {
  const Coordinates& extents = topology.extents();
  const auto longest = std::ranges::max_element(extents);
  return topology.kind() == Topology::Kind::torus && *longest == topology.ranks() && !topology.is_mapped() &&
         topology.wraps(static_cast<int>(longest - extents.begin()));
}

/// Only on a ring of links. bucket has twice the steps and half the bytes of a step there; the blocks that
/// recursive_doubling sends over 2, 4, ... links meet on the way. The factors are for the puts that the models
/// leave out. A tune row does not prevent the estimate: rows cannot tell a ring from other tori.
CostEstimate estimate(const EstimateRequest& request) {
  constexpr auto kLatencySeconds = tuned<double>("neighbor_exchange.latency");
  constexpr auto kBytesPerSecond = tuned<double>("neighbor_exchange.rate");
  CostEstimate estimate = {.tuning = {.segment_bytes = 32768, .slots = 8, .window = 4}};
  if (request.plan.collective != Collective::all_gather || !is_ring_of_links(request.plan.topology)) return estimate;
  estimate.holds = {request.bytes, request.bytes};
  const auto count = static_cast<unsigned>(request.plan.topology.ranks());
  const double ranks = count;
  const double group = std::bit_floor(count);
  const double meeting = count <= 8 && std::has_single_bit(count) ? group * group / 6 : (group * group - 1) / 3;
  const double block_s = static_cast<double>(request.bytes) / ranks / kBytesPerSecond;
  const double exchange_s = ranks / 2 * (kLatencySeconds + block_s);
  const double bucket_s = (ranks - 1) * (kLatencySeconds + block_s / 2);
  const double doubling_s = std::log2(group) * kLatencySeconds + meeting * block_s;
  if (exchange_s < std::min(0.9 * bucket_s, 0.95 * doubling_s)) estimate.seconds = exchange_s;
  char text[160];
  std::snprintf(text, sizeof(text),
                "on a ring of links: neighbor_exchange %.4g us, bucket %.4g us, recursive_doubling %.4g us",
                1e6 * exchange_s, 1e6 * bucket_s, 1e6 * doubling_s);
  estimate.why = text;
  return estimate;
}

}  // namespace

extern const Algorithm kNeighborExchange = {"neighbor_exchange",
                                            "Chen, Zhang, Zhang, Yuan, HPC Asia 2005, section 2",
                                            why_not,
                                            plan,
                                            nullptr,
                                            estimate,
                                            nullptr,
                                            slots_least};

}  // namespace torii
