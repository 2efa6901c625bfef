// SPDX-License-Identifier: Apache-2.0
// node: the direct algorithm for ranks that share memory. Every rank combines its own block straight from all peers'
// operands and stores it straight into all peers' results.
//
//   allreduce, 3 ranks, one segment          one_shot (short vectors, one message)
//
//        give        combine      take          send          combine
//   0:  b1>1 b2>2   b0: 0+1+2   b1<1 b2<2       all>1,2       0+1+2
//   1:  b2>2 b0>0   b1: 0+1+2   b2<2 b0<0       all>2,0       0+1+2
//   2:  b0>0 b1>1   b2: 0+1+2   b0<0 b1<1       all>0,1       0+1+2
//
// Operands are read in place and results written in place. So between buffers that peers can address the first and the
// third column send signals only. The order of operands is that of the ranks for every block.
//
// Scan and exscan: every rank sends its whole operand to all ranks after it, in one message that all of them read. It
// combines the operands of the ranks before it. By value, since in place its result would overwrite what others still
// read.
//
// Leaves in any intervals (PlanRequest::leaves): a rank gives each of its operands, and combines those of all ranks. It
// uses several flows if no single one makes the expression. Partial values stay in slots of its own.
//
// Scatter and gather are those of direct.cpp.
//
// Source: the direct algorithm of reduce-scatter and all-gather, in R. Thakur, R. Rabenseifner, W. Gropp, Optimization
// of Collective Communication Operations in MPICH, IJHPCA 19(1), 2005.
// Cost of allreduce for n bytes on P ranks: 2 steps; each pair of ranks exchanges 2n/P bytes each way. one_shot: 1
// step, n bytes each way.
#include <algorithm>

#include "collectives/building/exchange_plan.hpp"
#include "collectives/building/plan_builder.hpp"

namespace torii {
namespace {

/// More ranks would have too many streams: there is one for each pair.
constexpr int kRanksMax = 256;

enum Tag : int { kGive = 0, kTake = 1, kPartial = 1 << 16 };

/// Operand 0 has the tag of the only operand; the others follow kTake.
int give_tag(int operand) { return operand == 0 ? kGive : kTake + operand; }

bool is_one_shot(const PlanRequest& request) {
  return request.tuning.one_shot &&
         (request.collective == Collective::allreduce || request.collective == Collective::reduce);
}

bool deals_blocks(const PlanRequest& request) {
  if (is_prefix(request.collective)) return false;
  return request.collective == Collective::all_gather || (combines(request.collective) && !is_one_shot(request));
}

/// The operands of a rank take turns on the streams to another one.
LeafTurn turn_of(const PlanRequest& request, int sender, int operand) {
  return LeafTurn::of(operand, request.leaves == nullptr ? 1 : request.leaves->operands(sender));
}

/// The stream by which `sender` gives an operand of one block to a rank that combines it.
Stream give_stream(const PlanRequest& request, int sender, int peer, int operand = 0) {
  const LeafTurn turn = turn_of(request, sender, operand);
  Stream stream = {.peer = peer, .tag = give_tag(turn.stream), .messages_per_segment = turn.messages};
  stream.delivery = request.tuning.one_shot ? Delivery::through_slots : Delivery::read_in_place;
  if (stream.delivery == Delivery::read_in_place) {
    stream.operand = turn.stream;
    stream.operand_step = turn.messages == 1 ? 0 : LeafTurn::kStreams;
  }
  if (turn.messages > 1) return stream;
  // The receiver's block comes back, and a root's operand goes to the ranks that send it a block.
  const bool is_root = request.collective == Collective::reduce && sender == request.root;
  stream.is_awaited = is_one_shot(request) || !(request.collective == Collective::allreduce || is_root);
  return stream;
}

/// The stream by which a rank stores its finished block into a peer's result.
Stream take_stream(const PlanRequest& request, int peer) {
  Stream stream = {.peer = peer, .tag = kTake};
  if (request.collective == Collective::all_gather && !request.tuning.one_shot) {
    stream.delivery = Delivery::read_in_place;
    return stream;
  }
  stream.delivery = request.tuning.one_shot ? Delivery::through_slots : Delivery::write_in_place;
  return stream;
}

class NodePlan {
 public:
  NodePlan(const PlanRequest& request, int rank)
      : request_(request),
        rank_(rank),
        ranks_(request.topology.ranks()),
        blocks_(deals_blocks(request) ? ranks_ : 1),
        builder_(request, rank, Dealing::block, blocks_),
        flows_(builder_.lane().flows) {}

  Plan make() {
    switch (request_.collective) {
      case Collective::barrier:
        meet();
        break;
      case Collective::broadcast:
        broadcast();
        break;
      case Collective::all_gather:
        all_gather();
        break;
      case Collective::scan:
      case Collective::exscan:
        prefix();
        break;
      default:
        if (is_one_shot(request_)) {
          send_whole();
        } else {
          give_blocks();
        }
        combine();
        if (!is_one_shot(request_) && request_.collective != Collective::reduce_scatter) take_blocks();
    }
    return builder_.take();
  }

 private:
  bool has_result(int rank) const { return request_.collective != Collective::reduce || rank == request_.root; }
  /// The k-th peer: each rank starts with another one, so that not all meet at the same rank.
  int peer(int k) const { return (rank_ + k) % ranks_; }
  Walk walk(int block) const { return blocks_from(blocks_ == 1 ? 0 : block, 1, blocks_); }

  void meet() {
    Stream token = {.tag = kGive};
    Flow enter = {.label = "enter"};
    Flow leave = {.label = "leave"};
    for (int k = 1; k < ranks_; ++k) {
      token.peer = peer(k);
      enter.targets.push_back(builder_.out(token));
      leave.sources.push_back(builder_.in(token));
    }
    if (ranks_ == 1) return;
    flows_.push_back(std::move(enter));
    flows_.push_back(std::move(leave));
  }

  void broadcast() {
    if (rank_ != request_.root) {
      const StreamEnd from_root = builder_.in(give_stream(request_, request_.root, request_.root));
      flows_.push_back({.sources = {from_root}, .keep = true, .label = "take"});
    } else if (ranks_ > 1) {
      send_whole();
    }
  }

  /// The block is an unchanged operand, so it is read in place unless a message is quicker.
  void all_gather() {
    Flow own = {.walk = walk(rank_), .sources = {{}}, .keep = true, .label = "own block"};
    if (request_.tuning.one_shot) {
      own.targets = to_all();
    } else if (ranks_ > 1) {
      flows_.push_back({.walk = walk(rank_), .sources = {{}}, .targets = to_all(), .label = "give"});
    }
    flows_.push_back(std::move(own));
    take_blocks();
  }

  void prefix() {
    Flow give = {.sources = {{}}, .label = "give"};
    for (int peer = rank_ + 1; peer < ranks_; ++peer) {
      give.targets.push_back(builder_.out({.peer = peer, .tag = kGive}));
    }
    if (!give.targets.empty()) flows_.push_back(std::move(give));
    const bool canonical = request_.determinism == Determinism::canonical;
    Flow fold = {.keep = true, .fold = canonical ? Fold::canonical : Fold::left, .label = "combine"};
    for (int peer = 0; peer < rank_; ++peer) fold.sources.push_back(builder_.in({.peer = peer, .tag = kGive}));
    if (request_.collective == Collective::scan) fold.sources.push_back(StreamEnd{});
    if (!fold.sources.empty()) flows_.push_back(std::move(fold));
  }

  int operands() const { return request_.leaves == nullptr ? 1 : request_.leaves->operands(rank_); }
  static StreamEnd own(int operand) { return {kOwn, static_cast<std::uint16_t>(operand)}; }

  StreamEnd give(int peer, int operand) {
    return builder_.out_at(give_stream(request_, rank_, peer, operand), turn_of(request_, rank_, operand).position);
  }

  /// Sends the whole own operands to all ranks that need them.
  void send_whole() {
    for (int operand = 0; operand < operands(); ++operand) {
      Flow send = {.sources = {own(operand)}, .label = "send"};
      for (int k = 1; k < ranks_; ++k) {
        if (request_.collective == Collective::broadcast || has_result(peer(k))) {
          send.targets.push_back(give(peer(k), operand));
        }
      }
      if (!send.targets.empty()) flows_.push_back(std::move(send));
    }
  }

  void give_blocks() {
    for (int k = 1; k < ranks_; ++k) {
      for (int operand = 0; operand < operands(); ++operand) {
        flows_.push_back(
            {.walk = walk(peer(k)), .sources = {own(operand)}, .targets = {give(peer(k), operand)}, .label = "give"});
      }
    }
  }

  /// The flow that combines the operands of all ranks in rank order: the own block, or the whole vector in one shot.
  Flow all_combined() {
    if (request_.leaves != nullptr) return leaves_combined(0);
    const bool canonical = request_.determinism == Determinism::canonical;
    Flow fold = {.walk = walk(rank_), .fold = canonical ? Fold::canonical : Fold::left, .label = "combine"};
    for (int rank = 0; rank < ranks_; ++rank) {
      fold.sources.push_back(rank == rank_ ? StreamEnd{} : builder_.in(give_stream(request_, rank, rank)));
    }
    return fold;
  }

  /// The operand that is the value of a subtree.
  StreamEnd operand_at(int subtree) {
    const LeafSubtree& one = request_.leaves->subtrees()[static_cast<std::size_t>(subtree)];
    if (one.rank == rank_) return own(one.operand);
    return builder_.in_at(give_stream(request_, one.rank, one.rank, one.operand),
                          turn_of(request_, one.rank, one.operand).position);
  }

  /// The flow that combines a subtree with all below it. Flows that must run before are added.
  Flow leaves_combined(int root) {
    const LeafIntervals& leaves = *request_.leaves;
    Flow fold = {.walk = walk(rank_), .label = "combine"};
    if (leaves.is_canonical(root)) {
      fold.fold = Fold::canonical;
      for (int at = root; at < leaves.end_of(root); ++at) fold.sources.push_back(operand_at(at));
      return fold;
    }
    fold.sources.push_back(operand_at(root));
    for (const int child : leaves.subtrees()[static_cast<std::size_t>(root)].children) {
      fold.sources.push_back(leaves.end_of(child) == child + 1 ? operand_at(child) : partial(child));
    }
    return fold;
  }

  /// The value of a subtree with all below it, which goes to the flow that needs it through slots of this rank.
  StreamEnd partial(int subtree) {
    const Stream to_self = {.peer = rank_, .tag = kPartial + subtree};
    Flow fold = leaves_combined(subtree);
    fold.targets.push_back(builder_.out(to_self));
    flows_.push_back(std::move(fold));
    return builder_.in(to_self);
  }

  void combine() {
    if (is_one_shot(request_) && !has_result(rank_)) return;
    Flow fold = all_combined();
    fold.keep = has_result(rank_);
    if (!is_one_shot(request_) && request_.collective != Collective::reduce_scatter) fold.targets = to_all();
    flows_.push_back(std::move(fold));
  }

  std::vector<StreamEnd> to_all() {
    std::vector<StreamEnd> targets;
    for (int k = 1; k < ranks_; ++k) {
      if (has_result(peer(k))) targets.push_back(builder_.out(take_stream(request_, peer(k))));
    }
    return targets;
  }

  void take_blocks() {
    if (!has_result(rank_)) return;
    for (int k = 1; k < ranks_; ++k) {
      const StreamEnd take = builder_.in(take_stream(request_, peer(k)));
      flows_.push_back({.walk = walk(peer(k)), .sources = {take}, .keep = true, .label = "take"});
    }
  }

  const PlanRequest& request_;
  const int rank_;
  const int ranks_;
  const int blocks_;
  PlanBuilder builder_;
  std::vector<Flow>& flows_;
};

std::string why_not(const PlanRequest& request) {
  if (request.collective == Collective::alltoall) return "node has no alltoall; direct has";
  if (request.topology.ranks() > kRanksMax) {
    return "node is for up to " + std::to_string(kRanksMax) + " ranks, there are " +
           std::to_string(request.topology.ranks());
  }
  if (request.leaves == nullptr) return why_not_any(request);
  return why_not_leaves("node with leaves", {Collective::reduce, Collective::allreduce, Collective::reduce_scatter},
                        request);
}

Plan draft(const PlanRequest& request, int rank) { return NodePlan(request, rank).make(); }

/// With leaves, the ranks besides the root of which one has the most streams in some direction: they have the most and
/// the fewest operands.
std::pair<int, int> most_and_fewest(const PlanRequest& request) {
  const LeafIntervals& leaves = *request.leaves;
  std::pair<int, int> found = {request.root, request.root};
  for (int rank = 0; rank < leaves.ranks(); ++rank) {
    if (rank == request.root) continue;
    if (found.first == request.root || leaves.operands(rank) > leaves.operands(found.first)) found.first = rank;
    if (found.second == request.root || leaves.operands(rank) < leaves.operands(found.second)) found.second = rank;
  }
  return found;
}

int slots_least(const PlanRequest& request) {
  return request.leaves == nullptr ? 1 : LeafTurn::slots_least(request.leaves->operands_max());
}

Plan plan(const PlanRequest& request, int rank) {
  if (is_personalised(request.collective)) return direct_plan(request, rank);
  Plan result = draft(request, rank);
  result.slots = std::max(result.slots, slots_least(request));
  const int ranks = request.topology.ranks();
  if (request.leaves != nullptr) {
    const auto [most, fewest] = most_and_fewest(request);
    set_maxima(result, request, draft, {request.root, most, fewest});
    return result;
  }
  const int second = is_prefix(request.collective) ? ranks - 1 : (request.root + 1) % ranks;
  set_maxima(result, request, draft, {request.root, second});
  return result;
}

ExpressionId order(const PlanRequest& request, int rank, ExpressionPool& pool) {
  if (request.leaves != nullptr) return leaves_order(request, pool);
  int operands = request.topology.ranks();
  if (is_prefix(request.collective)) operands = request.collective == Collective::scan ? rank + 1 : rank;
  if (operands == 0) return kNoExpression;
  const std::vector<ExpressionId> leaves = all_leaves(pool, operands);
  return request.determinism == Determinism::canonical ? pool.canonical(leaves, true) : pool.fold(leaves, true);
}

}  // namespace

extern const Algorithm kNode = {
    "node",  "direct reduce-scatter and all-gather; Thakur, Rabenseifner, Gropp 2005, section 4",
    why_not, plan,
    order,   nullptr,
    nullptr, slots_least};

}  // namespace torii
