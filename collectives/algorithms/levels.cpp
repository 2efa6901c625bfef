// SPDX-License-Identifier: Apache-2.0
// levels: for a node whose ranks share caches in groups (Topology::per_group()). Ranks combine within their group
// first, so that between groups each vector crosses once for each group, not once for each rank.
//
//   allreduce, 2 groups of 2; block b belongs to rank b            group 0      group 1
//                                                                  0 -- 1       2 -- 3
//        within the group         between groups        within     |             |
//   0:   b0, b2: 0+1              b0: (0+1)+(2+3)       b1, b3     +-- place 0 --+
//   1:   b1, b3: 0+1              b1: (0+1)+(2+3)       b0, b2
//   2:   b2, b0: 2+3              b2: (0+1)+(2+3)       b3, b1     ranks of equal place in their groups
//   3:   b3, b1: 2+3              b3: (0+1)+(2+3)       b2, b0     exchange sums and results
//
// A rank reads the operands of its mates in place, and sends a sum to the rank of its place in every other group. It
// gets finished blocks from these, and hands them to its mates. all_gather is the second half, reduce_scatter the
// first; in a reduce the first half ends at the root. In a broadcast each rank reads a slice of the vector from the
// root, and mates exchange slices.
//
// Source: the idea of levels from the machine's caches is that of G. Katevenis, M. Ploumidis, M. Marazakis, A Framework
// for Hierarchical Single-copy MPI Collectives on Multicore Nodes, IEEE Cluster 2022; the slices are bucket's for ranks
// of one node (bucket.cpp).
// Cost of allreduce for n bytes on G groups of k ranks: 4 steps. A rank copies 2n(k-1)/k bytes within its group and
// 2n(G-1)/(Gk) between groups, k times less than node does.
// Order: mates in the order of ranks, then groups in order.
#include <numeric>

#include "collectives/building/levels_model.hpp"
#include "collectives/building/steps.hpp"
#include "runtime/base/tuned_constants.hpp"

namespace torii {
namespace {

/// Streams of one pair of ranks. Messages of a stream are counted in 16 bits.
enum Tag : int { kGive = 0, kSum = 1, kHeld = 2, kAcross = 3, kTake = 4, kRoot = 5 };
constexpr int kRanksMax = 65535;

class LevelsPlan {
 public:
  LevelsPlan(const PlanRequest& request, int rank)
      : request_(request),
        rank_(rank),
        per_group_(request.topology.per_group()),
        groups_(request.topology.ranks() / per_group_),
        group_(rank / per_group_),
        place_(rank % per_group_),
        steps_(request, rank, request.topology.ranks()) {
    for (int place = 0; place < per_group_; ++place) {
      sums_.push_back(slice(place, 1));
      results_.push_back(slice(place, 0));
      slices_.emplace_back();
      for (int group = 0; group < groups_; ++group) slices_.back().push_back(rank_at(group, place));
    }
    std::iota(own_block_.begin(), own_block_.end(), rank);
  }

  Plan make() {
    if (combines(request_.collective)) {
      give();
      combine();
    } else if (request_.collective == Collective::broadcast) {
      rank_ == request_.root ? give_blocks() : take_block();
    } else {
      steps_.begin("own block", rank_).combine(Steps::own()).keep();
      send_across();
      hand_to_mates();
    }
    if (request_.collective == Collective::reduce && rank_ == request_.root) gather();
    if (takes(rank_)) take_blocks();
    return steps_.take();
  }

 private:
  /// Whether a rank gets the blocks of all others. The root of a broadcast has them.
  bool takes(int rank) const {
    if (request_.collective == Collective::broadcast) return rank != request_.root;
    return request_.collective == Collective::allreduce || request_.collective == Collective::all_gather;
  }
  int rank_at(int group, int place) const { return group * per_group_ + place; }
  /// The blocks that ranks of a place own, group by group, from the next group (`first` is 1) or from the own group (0)
  /// on. The own block comes last in sums, which other groups wait for, and first in results.
  std::vector<int> slice(int place, int first) const {
    std::vector<int> blocks;
    for (int step = first; step < groups_ + first; ++step) blocks.push_back(rank_at((group_ + step) % groups_, place));
    return blocks;
  }

  Link to_mate(Tag tag, int place, const std::vector<int>& blocks) const {
    return {{.peer = rank_at(group_, place),
             .tag = tag,
             .delivery = tag == kGive ? Delivery::read_in_place : Delivery::write_in_place},
            blocks};
  }
  /// Sums for the block of the rank of this place in another group, and from there for the own block.
  Link sum_to(int group) const {
    const int peer = rank_at(group, place_);
    return {{.peer = peer, .tag = kSum, .wide = request_.wide_wire}, {&slices_[index(place_)][index(group)], 1}};
  }
  Link sum_from(int group) const {
    return {{.peer = rank_at(group, place_), .tag = kSum, .wide = request_.wide_wire}, own_block_};
  }
  Link across_to(int group) const {
    return {{.peer = rank_at(group, place_), .tag = kAcross, .delivery = Delivery::write_in_place}, own_block_};
  }
  Link across_from(int group) const {
    return {{.peer = rank_at(group, place_), .tag = kAcross, .delivery = Delivery::write_in_place},
            {&slices_[index(place_)][index(group)], 1}};
  }
  Held held() const { return {kHeld, own_block_}; }
  static std::size_t index(int value) { return static_cast<std::size_t>(value); }

  /// The own operands for the slices of all mates, in the order in which these want them.
  void give() {
    for (std::size_t i = 0; i < index(groups_); ++i) {
      for (int place = 0; place < per_group_; ++place) {
        if (place == place_) continue;
        const Link to = to_mate(kGive, place, sums_[index(place)]);
        steps_.begin("give", to.blocks[i]).combine(Steps::own()).send(to);
      }
    }
    steps_.lane();
  }

  /// The sum of the group for a block of the own slice.
  void combine_group(int block) {
    steps_.begin("sum of the group", block);
    if (request_.determinism == Determinism::canonical) steps_.canonical();
    for (int place = 0; place < per_group_; ++place) {
      place == place_ ? steps_.combine(Steps::own()) : steps_.combine(to_mate(kGive, place, sums_[index(place_)]));
    }
  }

  void combine() {
    for (int step = 1; step < groups_; ++step) {
      const int group = (group_ + step) % groups_;
      combine_group(rank_at(group, place_));
      steps_.send(sum_to(group));
    }
    combine_group(rank_);
    steps_.hold(held());
    steps_.begin("sum of all", rank_);
    if (request_.determinism == Determinism::canonical) steps_.canonical();
    for (int group = 0; group < groups_; ++group) {
      group == group_ ? steps_.combine(held()) : steps_.combine(sum_from(group));
    }
    if (request_.collective == Collective::reduce && rank_ != request_.root) {
      steps_.send(root_link(request_.root, own_block_));
      return;
    }
    steps_.keep();
    if (request_.collective != Collective::allreduce) return;
    send_across();
    hand_to_mates();
  }

  static Link root_link(int peer, std::span<const int> block) {
    return {{.peer = peer, .tag = kRoot, .delivery = Delivery::write_in_place}, block};
  }

  /// The root takes the finished blocks of all ranks.
  void gather() {
    steps_.lane();
    for (int step = 1; step < groups_ * per_group_; ++step) {
      const int peer = (rank_ + step) % (groups_ * per_group_);
      const int& block = slices_[index(peer % per_group_)][index(peer / per_group_)];
      steps_.begin("take", block).combine(root_link(peer, {&block, 1})).keep();
    }
  }

  /// The step's value, which is the own block, to the ranks of this place in other groups.
  void send_across() {
    for (int step = 1; step < groups_; ++step) {
      const int group = (group_ + step) % groups_;
      if (takes(rank_at(group, place_))) steps_.send(across_to(group));
    }
  }

  /// The step's value, a block of the own slice, to all mates.
  void hand_to_mates() {
    for (int place = 0; place < per_group_; ++place) {
      if (place != place_ && takes(rank_at(group_, place))) {
        steps_.send(to_mate(kTake, place, results_[index(place_)]));
      }
    }
  }

  void take_blocks() {
    steps_.lane();
    for (int step = 1; step < groups_; ++step) {
      const int group = (group_ + step) % groups_;
      steps_.begin("result", rank_at(group, place_)).combine(across_from(group)).keep();
      hand_to_mates();
    }
    steps_.lane();
    for (std::size_t i = 0; i < index(groups_); ++i) {
      for (int place = 0; place < per_group_; ++place) {
        if (place == place_) continue;
        const Link from = to_mate(kTake, place, results_[index(place)]);
        steps_.begin("take", from.blocks[i]).combine(from).keep();
      }
    }
  }

  static Link block_link(int peer, std::span<const int> block) {
    return {{.peer = peer, .tag = kGive, .delivery = Delivery::read_in_place}, block};
  }

  /// The root gives each rank its block, and then does its part of the second half with what it has.
  void give_blocks() {
    for (int step = 1; step < groups_ * per_group_; ++step) {
      const int peer = (rank_ + step) % (groups_ * per_group_);
      const int& block = slices_[index(peer % per_group_)][index(peer / per_group_)];
      steps_.begin("give", block).combine(Steps::own()).send(block_link(peer, {&block, 1}));
    }
    steps_.lane();
    for (const int block : results_[index(place_)]) {
      steps_.begin("own slice", block).combine(Steps::own());
      if (block == rank_) send_across();
      hand_to_mates();
    }
  }

  void take_block() {
    steps_.begin("own block", rank_).combine(block_link(request_.root, own_block_)).keep();
    send_across();
    hand_to_mates();
  }

  const PlanRequest& request_;
  const int rank_;
  const int per_group_;
  const int groups_;
  const int group_;
  const int place_;  ///< in the group
  Steps steps_;
  std::array<int, 1> own_block_ = {};
  std::vector<std::vector<int>> sums_;     ///< by place
  std::vector<std::vector<int>> results_;  ///< by place
  std::vector<std::vector<int>> slices_;   ///< by place, and then by group
};

ExpressionId order(const PlanRequest& request, int /*block*/, ExpressionPool& pool) {
  const bool is_canonical = request.determinism == Determinism::canonical;
  const auto fold = [&](const std::vector<ExpressionId>& operands, bool rounded) {
    return is_canonical ? pool.canonical(operands, rounded) : pool.fold(operands, rounded);
  };
  const int per_group = request.topology.per_group();
  std::vector<ExpressionId> sums;
  for (int first = 0; first < request.topology.ranks(); first += per_group) {
    std::vector<ExpressionId> operands;
    for (int rank = first; rank < first + per_group; ++rank) operands.push_back(pool.leaf(rank));
    sums.push_back(fold(operands, !request.wide_wire));
  }
  return fold(sums, true);
}

std::string why_not(const PlanRequest& request) {
  if (request.topology.per_group() == 0) {
    return "nothing is known of groups of ranks that share a cache; bind each rank to the cores of one cache, or name "
           "groups of neighbouring ranks as in TOPOLOGY=node:8*4";
  }
  std::string reason = why_not_any("levels",
                                   {Collective::broadcast, Collective::reduce, Collective::allreduce,
                                    Collective::all_gather, Collective::reduce_scatter},
                                   request);
  if (!reason.empty()) return reason;
  const int ranks = request.topology.ranks();
  if (ranks > kRanksMax) {
    return "levels is for up to " + std::to_string(kRanksMax) + " ranks, there are " + std::to_string(ranks);
  }
  return combines(request.collective) ? why_not_canonical(request, order) : "";
}

Plan draft(const PlanRequest& request, int rank) { return LevelsPlan(request, rank).make(); }

Plan plan(const PlanRequest& request, int rank) {
  Plan result = draft(request, rank);
  const int ranks = request.topology.ranks();
  // The root, a mate of its, and a rank of another group; without a root all are alike.
  const int mate = request.root % request.topology.per_group() == 0 ? request.root + 1 : request.root - 1;
  set_maxima(result, request, draft, {request.root, mate, (request.root + request.topology.per_group()) % ranks});
  return result;
}

/// Few ranks, and shorter and longer vectors, are left to the tune table: in simulations node in one shot was faster
/// there, or ring.
constexpr auto kRanksLeast = tuned<int>("levels.ranks_min");
constexpr auto kBytesLeast = tuned<std::size_t>("levels.bytes_min");
constexpr auto kBytesMostPerRank = tuned<std::size_t>("levels.bytes_max_per_rank");

/// Only where the model sees a clear gain, since its figures are assumed, and no row for nodes says otherwise.
CostEstimate estimate(const EstimateRequest& asked) {
  constexpr auto kClear = tuned<double>("levels.clear_gain");
  CostEstimate made = {.tuning = {.segment_bytes = 32768, .slots = 8, .window = 4}};
  const Topology& topology = asked.plan.topology;
  if (topology.per_group() == 0 || asked.several_nodes || asked.is_tuned || !why_not(asked.plan).empty()) return made;
  const int ranks = topology.ranks();
  if (ranks < kRanksLeast) return made;
  const ByteInterval modelled = {kBytesLeast, kBytesMostPerRank * static_cast<std::size_t>(ranks)};
  made.holds.narrow(asked.bytes, modelled);
  if (!modelled.contains(asked.bytes)) return made;
  made.holds = {asked.bytes, asked.bytes};
  const LevelCall call = {asked.plan.collective, static_cast<double>(asked.bytes), ranks / topology.per_group(),
                          topology.per_group()};
  const double seconds = levels_time_s(call);
  const double flat = flat_time_s(call);
  if (seconds >= kClear * flat) return made;
  made.seconds = seconds;
  made.why = "by the model of caches: " + std::to_string(1e6 * seconds) + " us, node " + std::to_string(1e6 * flat);
  return made;
}

}  // namespace

extern const Algorithm kLevels = {
    "levels", "two levels of shared caches; after Katevenis, Ploumidis, Marazakis, Cluster 2022", why_not, plan, order,
    estimate};

}  // namespace torii
