// SPDX-License-Identifier: Apache-2.0
// multilane: collectives between sites over several lanes, each a stream between two heads. Scatter and gather are
// here, collectives of whole vectors in multilane_trees.cpp. An alltoall has a stream for each pair of ranks: it is a
// sweep with no more of them under way than the model asks for.
//
//   scatter from 0, sites 0 1 2 and 3 4 5 6, 2 lanes     root's site        long link       other site
//
//                                                   0 -----------------------> 3 -> 4      lane 0: blocks 4 3
//                                                   |--> 1 ------------------> 5 -> 6      lane 1: blocks 6 5
//                                                   `--> 2                                 own site: blocks 1 2
//
// The root is the first head of its site and hands the others their shares; the heads beyond the link keep their own
// blocks and hand on the others, segment by segment, as they come. A gather goes the same ways back.
//
// Source: the multi-lane scatter of T. Chiba, T. Endo, S. Matsuoka, Optimization of MPI collective communication
// algorithms for grids (docs/algorithms.md, "Lanes between sites"), with heads that forward, and for any number of
// sites.
// Cost: lanes_time_s() of lanes_model.hpp; every block crosses the long links of its way once, and at most three
// streams.
#include <algorithm>

#include "collectives/building/multilane_trees.hpp"
#include "collectives/building/plan_builder.hpp"
#include "collectives/building/sites.hpp"
#include "collectives/building/sweep_plan.hpp"

namespace torii {
namespace {

std::size_t at(int value) { return static_cast<std::size_t>(value); }

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

/// All streams of a scatter from the root.
class Hops {
 public:
  Hops(const PlanRequest& request, const Sites& sites) : request_(request), sites_(sites) {}

  std::vector<Hop> make() {
    const std::vector<int>& own = sites_.ranks[at(sites_.of_rank[at(request_.root)])];
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
    const int sender = heads_[at(lanes_) % heads_.size()];
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

/// The flows of one rank.
class Flows {
 public:
  Flows(const PlanRequest& request, const std::vector<Hop>& hops, int rank)
      : request_(request),
        hops_(hops),
        rank_(rank),
        ranks_(request.topology.ranks()),
        builder_(request, rank, Dealing::even, ranks_),
        next_(at(ranks_), StreamEnd{}) {}

  Plan make() {
    // A rank goes along the streams on the root's side of its blocks' ways, and looks up where each block goes on or
    // has come from. The root has only the other side.
    const bool goes_along_in = is_gather(request_) == (rank_ == request_.root);
    for (const Hop& hop : hops_) {
      if (hop.sender == rank_) open(hop, builder_.out(stream(hop, hop.receiver)), !goes_along_in);
      if (hop.receiver == rank_) open(hop, builder_.in(stream(hop, hop.sender)), goes_along_in);
    }
    for (const Held& held : held_) {
      if (held.hop->tag != kLastTag) add(held, builder_.lane());
    }
    Lane& last = builder_.lane();
    for (const Held& held : held_) {
      if (held.hop->tag == kLastTag) add(held, last);
    }
    if (rank_ == request_.root) {
      last.flows.push_back(
          {.walk = blocks_from(rank_, 1, ranks_), .sources = {{}}, .keep = true, .label = "own block"});
    }
    return builder_.take();
  }

 private:
  /// A stream along whose blocks this rank goes.
  struct Held {
    const Hop* hop;
    StreamEnd end;
  };

  void open(const Hop& hop, StreamEnd end, bool goes_along) {
    if (goes_along) {
      held_.push_back({&hop, end});
      return;
    }
    for (std::size_t i = 0; i < hop.blocks.size(); ++i) {
      next_[at(hop.blocks[i])] = torii::at(end, static_cast<int>(i));
    }
  }

  Stream stream(const Hop& hop, int peer) const {
    Stream stream = {.peer = peer, .tag = hop.tag, .messages_per_segment = static_cast<int>(hop.blocks.size())};
    const bool from_owner = is_gather(request_) ? hop.tag == kLastTag : hop.sender == request_.root;
    const bool to_owner = is_gather(request_) ? hop.receiver == request_.root : hop.tag == kLastTag;
    if (from_owner) {
      stream.carriage = Carriage::lend;
    } else if (to_owner) {
      stream.carriage = Carriage::land;
    }
    return stream;
  }

  void add(const Held& held, Lane& lane) {
    StepWriter writer(lane, ranks_);
    const bool comes_in = held.hop->receiver == rank_;
    for (std::size_t i = 0; i < held.hop->blocks.size(); ++i) {
      const int block = held.hop->blocks[i];
      const StreamEnd here = torii::at(held.end, static_cast<int>(i));
      const StreamEnd there = next_[at(block)];
      Flow step = {.label = "forward"};
      if (comes_in) {
        step.sources = {here};
        step.keep = there.stream == kOwn;
        if (step.keep) {
          step.label = "take";
        } else {
          step.targets = {there};
        }
      } else {
        step.sources = {there};
        step.targets = {here};
        if (there.stream == kOwn) step.label = "send";
      }
      writer.add(block, std::move(step));
    }
  }

  const PlanRequest& request_;
  const std::vector<Hop>& hops_;
  const int rank_;
  const int ranks_;
  PlanBuilder builder_;
  std::vector<Held> held_;
  std::vector<StreamEnd> next_;  ///< by block; the own operand or result where the rank does not forward it
};

std::string why_not(const PlanRequest& request) {
  std::string reason = no_such_collective("multilane",
                                          {Collective::broadcast, Collective::reduce, Collective::allreduce,
                                           Collective::alltoall, Collective::scatter, Collective::gather},
                                          request.collective);
  if (reason.empty()) reason = why_not_any(request);
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
  if (request.collective == Collective::alltoall) return sweep_plan(request, rank, rotation(request.topology.ranks()));
  const std::vector<Hop> hops = hops_of(request);
  Plan plan = Flows(request, hops, rank).make();
  std::vector<int> in(at(plan.ranks), 0);
  std::vector<int> out(at(plan.ranks), 0);
  for (const Hop& hop : hops) {
    ++out[at(hop.sender)];
    ++in[at(hop.receiver)];
  }
  plan.in_streams_max = *std::max_element(in.begin(), in.end());
  plan.out_streams_max = *std::max_element(out.begin(), out.end());
  return plan;
}

}  // namespace

extern const Algorithm kMultilane = {"multilane", "Chiba, Endo, Matsuoka, multi-lane scatter, with heads that forward",
                                     why_not, make_plan, lane_trees_order};

}  // namespace torii
