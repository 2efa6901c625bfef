// SPDX-License-Identifier: Apache-2.0
// multilane: collectives between sites over several lanes, each a stream between two heads. Scatter and gather are
// here, collectives of whole vectors in multilane_trees.cpp. An alltoall is the pairwise exchange of direct with no
// more messages under way than the model asks for. It is never chosen by itself, because direct measured quicker on
// most lines; forced it serves lines that lose packets when many streams meet.
//
//   scatter from 0, sites 0 1 2 and 3 4 5 6, 2 lanes     root's site        long link       other site
//
//                                                   0 -----------------------> 3 -> 4      lane 0: blocks 4 3
//                                                   |--> 1 ------------------> 5 -> 6      lane 1: blocks 6 5
//                                                   `--> 2                                 own site: blocks 1 2
//
// The root is the first head of its site and hands the other heads their shares. The heads beyond the link keep their
// own blocks and hand on the others, segment by segment, as they come. A gather goes the same ways back.
//
// Source: the multi-lane scatter of T. Chiba, T. Endo, S. Matsuoka, Optimization of MPI collective communication
// algorithms for grids (docs/algorithms/multilane.md), with heads that forward, and for any number of
// sites.
// Cost: lanes_time_s() of lanes_model.hpp; every block crosses the long links of its way once, and at most three
// streams.
#include <algorithm>

#include "collectives/building/exchange_plan.hpp"
#include "collectives/building/lane_choice.hpp"
#include "collectives/building/multilane_trees.hpp"
#include "collectives/building/plan_builder.hpp"
#include "collectives/building/sites.hpp"
#include "collectives/building/steps.hpp"
#include "runtime/base/index.hpp"
#include "runtime/base/tuned_constants.hpp"

namespace torii {
namespace {

/// Within a site, from or to the rank whose block it is. Lanes have the tags behind it.
constexpr int kLastTag = 0;

/// A stream, and the blocks that go over it in this order.
struct Hop {
  int sender = 0;
  int receiver = 0;
  int tag = kLastTag;
  std::vector<int> blocks;
};

bool is_gather(const PlanRequest& request) { return request.collective == Collective::gather; }

/// All streams of a scatter from the root. A head hands on at most one lane to each other site, besides the blocks of
/// its own: no more streams go from a rank to another one than there are sites.
class Hops {
 public:
  Hops(const PlanRequest& request, const Sites& sites) : request_(request), sites_(sites) {}

  std::vector<Hop> make() {
    const std::vector<int>& own = sites_.ranks[index(sites_.of_rank[index(request_.root)])];
    heads_ = own;
    // The root is the first, and those that follow it come next.
    std::rotate(heads_.begin(), std::find(heads_.begin(), heads_.end(), request_.root), heads_.end());
    for (std::size_t site = 0; site < sites_.ranks.size(); ++site) {
      if (sites_.ranks[site] != own) cross(site);
    }
    for (std::size_t head = 1; head < heads_.size(); ++head) {
      hops_.push_back({request_.root, heads_[head], kLastTag, {heads_[head]}});
    }
    return std::move(hops_);
  }

 private:
  void cross(std::size_t site) {
    const std::vector<int>& ranks = sites_.ranks[site];
    const int most = static_cast<int>(std::min(heads_.size(), ranks.size()));
    const int asked = request_.tuning.lanes[site];
    const int lanes = asked == 0 ? most : std::min(asked, most);
    auto first = ranks.begin();
    for (const int share : lane_shares(static_cast<int>(ranks.size()), lanes)) {
      add_lane({first, first + share});
      first += share;
    }
  }

  /// `ranks` take their blocks by way of the first of them, whose own block comes last: it has no further to go.
  void add_lane(const std::vector<int>& ranks) {
    const int sender = heads_[index(lanes_) % heads_.size()];
    const int tag = kLastTag + ++lanes_;
    std::vector<int> blocks = ranks;
    std::rotate(blocks.begin(), blocks.begin() + 1, blocks.end());
    if (sender != request_.root) hops_.push_back({request_.root, sender, tag, blocks});
    hops_.push_back({sender, ranks.front(), tag, blocks});
    for (auto rank = ranks.begin() + 1; rank != ranks.end(); ++rank) {
      hops_.push_back({ranks.front(), *rank, kLastTag, {*rank}});
    }
  }

  const PlanRequest& request_;
  const Sites& sites_;
  std::vector<int> heads_;
  int lanes_ = 0;
  std::vector<Hop> hops_;
};

std::vector<Hop> hops_of(const PlanRequest& request) {
  std::vector<Hop> hops = Hops(request, sites_of(*request.topology.tree())).make();
  if (!is_gather(request)) return hops;
  for (Hop& hop : hops) {
    std::swap(hop.sender, hop.receiver);
    std::reverse(hop.blocks.begin(), hop.blocks.end());  // a head's own block is there first
  }
  return hops;
}

/// The steps of one rank.
class LanePlan {
 public:
  LanePlan(const PlanRequest& request, const std::vector<Hop>& hops, int rank)
      : request_(request),
        hops_(hops),
        rank_(rank),
        steps_(request, rank, request.topology.ranks()),
        other_(index(request.topology.ranks()), nullptr) {}

  Plan make() {
    // A rank goes along the streams on the root's side of its blocks' ways, and looks up where each block goes on or
    // has come from. The root has only the other side.
    const bool goes_along_in = is_gather(request_) == (rank_ == request_.root);
    std::vector<const Hop*> along;
    for (const Hop& hop : hops_) {
      if (hop.sender != rank_ && hop.receiver != rank_) continue;
      const bool comes_in = hop.receiver == rank_;
      if (comes_in) {
        steps_.open_in(link(hop));
      } else {
        steps_.open_out(link(hop));
      }
      if (comes_in == goes_along_in) {
        along.push_back(&hop);
        continue;
      }
      for (const int block : hop.blocks) other_[index(block)] = &hop;
    }
    for (const Hop* hop : along) {
      if (hop->tag == kLastTag) continue;
      steps_.lane();
      move(*hop);
    }
    steps_.lane();
    for (const Hop* hop : along) {
      if (hop->tag == kLastTag) move(*hop);
    }
    if (rank_ == request_.root) steps_.begin("own block", rank_).combine(Steps::own()).keep();
    return steps_.take();
  }

 private:
  Link link(const Hop& hop) const {
    Stream stream = {.peer = hop.sender == rank_ ? hop.receiver : hop.sender, .tag = hop.tag};
    const bool from_owner = is_gather(request_) ? hop.tag == kLastTag : hop.sender == request_.root;
    const bool to_owner = is_gather(request_) ? hop.receiver == request_.root : hop.tag == kLastTag;
    if (from_owner) {
      stream.delivery = Delivery::read_in_place;
    } else if (to_owner) {
      stream.delivery = Delivery::write_in_place;
    }
    return {stream, hop.blocks};
  }

  /// Moves the blocks of `hop`. A block without another stream begins or ends here.
  void move(const Hop& hop) {
    for (const int block : hop.blocks) {
      const Hop* from = hop.receiver == rank_ ? &hop : other_[index(block)];
      const Hop* to = hop.sender == rank_ ? &hop : other_[index(block)];
      if (from == nullptr) {
        steps_.begin("send", block).combine(Steps::own()).send(link(*to));
      } else if (to == nullptr) {
        steps_.begin("take", block).combine(link(*from)).keep();
      } else {
        steps_.begin("forward", block).combine(link(*from)).send(link(*to));
      }
    }
  }

  const PlanRequest& request_;
  const std::vector<Hop>& hops_;
  const int rank_;
  Steps steps_;
  std::vector<const Hop*> other_;  ///< by block, on the other side
};

static_assert(kSitesMax <= kLanePairStreams);

std::string why_not(const PlanRequest& request) {
  std::string reason = why_not_any("multilane",
                                   {Collective::broadcast, Collective::reduce, Collective::allreduce,
                                    Collective::alltoall, Collective::scatter, Collective::gather},
                                   request);
  if (!reason.empty()) return reason;
  const TreeTopology* tree = request.topology.tree();
  const std::size_t sites = tree == nullptr ? 1 : sites_of(*tree).ranks.size();
  if (sites >= 2 && sites <= kSitesMax) {
    if (request.determinism != Determinism::canonical || !combines(request.collective)) return "";
    return "each of its lanes combines in an order of its own; node (up to 256 ranks) and binomial honour the "
           "canonical "
           "one";
  }
  return "multilane is for 2 to " + std::to_string(kSitesMax) +
         " sites, a tree of links with at least 1 ms from one to another; " + request.topology.text() + " has " +
         std::to_string(sites);
}

Plan make_plan(const PlanRequest& request, int rank) {
  if (!is_personalised(request.collective)) return lane_trees_plan(request, rank);
  if (request.collective == Collective::alltoall)
    return exchange_plan(request, rank, rotation(request.topology.ranks()));
  const std::vector<Hop> hops = hops_of(request);
  Plan plan = LanePlan(request, hops, rank).make();
  std::vector<int> in(index(plan.ranks), 0);
  std::vector<int> out(index(plan.ranks), 0);
  for (const Hop& hop : hops) {
    ++out[index(hop.sender)];
    ++in[index(hop.receiver)];
  }
  plan.in_streams_max = *std::max_element(in.begin(), in.end());
  plan.out_streams_max = *std::max_element(out.begin(), out.end());
  return plan;
}

/// Whether lanes are worth an estimate that takes `seconds`. Shorter blocks cross in one message, and handing them on
/// costs more than the link. An allreduce must be quicker than whole vectors exchanged by all ranks of a site at once.
bool is_worth_lanes(const EstimateRequest& request, double seconds) {
  constexpr auto kShortBlockBytes = tuned<std::size_t>("multilane.short_block_bytes");
  const Collective collective = request.plan.collective;
  if (is_personalised(collective)) return block_bytes(request) > kShortBlockBytes;
  return collective != Collective::allreduce || seconds < streams_time_s(request, request.plan.topology.ranks());
}

CostEstimate estimate(const EstimateRequest& request) {
  // An estimate below another one by less than that is no better than the models can tell.
  constexpr auto kQuicker = tuned<double>("multilane.quicker");
  CostEstimate open = {.tuning = lanes_tuning(request)};
  if (request.plan.topology.tree() != nullptr) open.holds = {request.bytes, request.bytes};
  PlanRequest plan = request.plan;
  plan.tuning = open.tuning;
  if (request.is_tuned || plan.collective == Collective::alltoall || !why_not(plan).empty()) return open;
  const EstimateRequest tuned = {.plan = plan, .bytes = request.bytes, .streams = request.streams};
  const CostEstimate estimate = estimate_lanes(tuned);
  if (is_worth_lanes(tuned, estimate.seconds)) open.seconds = estimate.seconds / kQuicker;
  return open;
}

/// A rank has streams to most others, so its segments are bounded whatever the collective.
CostEstimate complete(const EstimateRequest& request) {
  PlanRequest plan = request.plan;
  plan.tuning.segment_bytes = segment_for_all_peers(plan);
  return estimate_lanes({.plan = plan, .bytes = request.bytes, .streams = request.streams});
}

}  // namespace

extern const Algorithm kMultilane = {
    "multilane",      "Chiba, Endo, Matsuoka, multi-lane scatter, with heads that forward",
    why_not,          make_plan,
    lane_trees_order, estimate,
    complete,         nullptr,
    kLanePairStreams};

}  // namespace torii
