// SPDX-License-Identifier: Apache-2.0
// Broadcast, reduce and allreduce over lanes: one tree of depth 3 for each lane, which carries one share of the vector.
//
//   broadcast from 0, sites 0 1 2 and 3 4 5, 2 lanes
//
//   share 0:  0 -> 1, 2 and, over the long link, 3        share 1:  0 -> 1 -> 2 and, over the long link, 4
//             3 -> 4, 5                                             4 -> 3, 5
//
// So the root scatters among the heads of its site, each lane carries its share across, and heads hand theirs to all
// ranks of their site. A reduce goes the same ways back. An allreduce begins and ends at the heads of the first site.
// Every rank sends each share to the share's head (a reduce-scatter inside the site). Heads of other sites send theirs
// across, and the sums come back the same ways. Going up and coming down are lanes of their own, so the long link is
// busy both ways.
//
// Source: the heads and streams of multi-lane scatter (docs/algorithms/multilane.md), for whole vectors.
// Cost: spread_time_s() and allreduce_time_s() of lanes_model.hpp; the vector crosses each long link once each way.
#include "collectives/building/multilane_trees.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "collectives/building/sites.hpp"
#include "collectives/building/tree_flows.hpp"
#include "runtime/base/index.hpp"

namespace torii {
namespace {

class LaneTrees {
 public:
  explicit LaneTrees(const PlanRequest& request)
      : request_(request), sites_(sites_of(*request.topology.tree())), own_site_(sites_.of_rank[index(request.root)]) {
    // The root is the first head of its site.
    std::vector<int>& own = sites_.ranks[index(own_site_)];
    std::rotate(own.begin(), std::find(own.begin(), own.end(), request.root), own.end());
    for (const std::vector<int>& ranks : sites_.ranks) most_ = std::max(most_, static_cast<int>(ranks.size()));
    for (std::size_t site = 0; site < sites_.ranks.size(); ++site) {
      const bool is_alone = site == index(own_site_) && sites_.ranks[site].size() == 1;
      if (!is_alone) most_ = std::min(most_, kLanePairStreams / 2 * trees_apart(site));
    }
  }

  int lanes() const {
    const SiteLanes& asked = request_.tuning.lanes;
    const auto sites = static_cast<std::ptrdiff_t>(std::min(sites_.ranks.size(), asked.size()));
    const int most = *std::max_element(asked.begin(), asked.begin() + sites);
    return most == 0 ? most_ : std::min(most, most_);
  }
  /// Two ranks of a site, or heads of two sites, share every so many-th tree, in each direction. Trees have lanes of
  /// their own up and down.
  int trees_apart(std::size_t site) const {
    const auto own = static_cast<int>(sites_.ranks[index(own_site_)].size());
    const auto ranks = static_cast<int>(sites_.ranks[site].size());
    return ranks == 1 ? own : ranks;
  }

  int root(int tree) const {
    return request_.collective == Collective::allreduce ? head(own_site_, tree) : request_.root;
  }
  /// -1 at the root of the tree.
  int parent(int tree, int rank) const {
    const int site = sites_.of_rank[index(rank)];
    if (rank == root(tree)) return -1;
    if (rank != head(site, tree)) return head(site, tree);
    return site == own_site_ ? root(tree) : head(own_site_, tree);
  }
  /// The ranks of the site in order, then, at the head of the root's site, the heads of the others.
  std::vector<int> children(int tree, int rank) const {
    const int site = sites_.of_rank[index(rank)];
    const int own_head = head(own_site_, tree);
    if (rank != head(site, tree)) return rank == root(tree) ? std::vector<int>{own_head} : std::vector<int>{};
    std::vector<int> ranks = sites_.ranks[index(site)];
    std::erase_if(ranks, [&](int one) { return one == rank || one == root(tree); });
    std::sort(ranks.begin(), ranks.end());
    for (int other = 0; site == own_site_ && other < static_cast<int>(sites_.ranks.size()); ++other) {
      if (other != own_site_) ranks.push_back(head(other, tree));
    }
    return ranks;
  }

  void set_maxima(Plan& plan) const {
    std::vector<int> in(index(plan.ranks), 0);
    std::vector<int> out(index(plan.ranks), 0);
    const bool goes_up = request_.collective != Collective::broadcast;
    const bool comes_down = request_.collective != Collective::reduce;
    for (int tree = 0; tree < lanes(); ++tree) {
      for (int rank = 0; rank < plan.ranks; ++rank) {
        const int above = parent(tree, rank);
        // At the root of an allreduce a local stream leads from the lane up to the lane down.
        if (above < 0) {
          in[index(rank)] += goes_up && comes_down ? 1 : 0;
          out[index(rank)] += goes_up && comes_down ? 1 : 0;
          continue;
        }
        out[index(rank)] += goes_up ? 1 : 0;
        in[index(above)] += goes_up ? 1 : 0;
        in[index(rank)] += comes_down ? 1 : 0;
        out[index(above)] += comes_down ? 1 : 0;
      }
    }
    plan.in_streams_max = *std::max_element(in.begin(), in.end());
    plan.out_streams_max = *std::max_element(out.begin(), out.end());
  }

 private:
  int head(int site, int tree) const {
    const std::vector<int>& ranks = sites_.ranks[index(site)];
    return ranks[index(tree) % ranks.size()];
  }

  const PlanRequest& request_;
  Sites sites_;
  int own_site_;
  int most_ = 1;  ///< ranks of the largest site: beyond, lanes would share streams. Or what small sites allow
};

}  // namespace

int tree_lanes(const PlanRequest& request) { return LaneTrees(request).lanes(); }

Plan lane_trees_plan(const PlanRequest& request, int rank) {
  const LaneTrees trees(request);
  PlanBuilder builder(request, rank, Dealing::block, trees.lanes());
  for (int tree = 0; tree < trees.lanes(); ++tree) {
    const std::vector<int> children = trees.children(tree, rank);
    add_tree_flows(builder, request, trees.lanes(),
                   {.number = tree,
                    .parent = trees.parent(tree, rank),
                    .children = children,
                    .down = Delivery::write_in_place,
                    .up_label = "up lane",
                    .down_label = "down lane"});
  }
  Plan plan = builder.take();
  trees.set_maxima(plan);
  return plan;
}

ExpressionId lane_trees_order(const PlanRequest& request, int block, ExpressionPool& pool) {
  const LaneTrees trees(request);
  return tree_order(
      request, trees.root(block), [](int rank) { return std::array{rank}; },
      [&](int rank) { return trees.children(block, rank); }, pool);
}

}  // namespace torii
