// SPDX-License-Identifier: Apache-2.0
// ring: every rank sends to the next one only. Blocks travel round and grow to their sums, then travel round again.
//
//   allreduce, 4 ranks: the block that each rank sends in each step        broadcast from 1, reduce to 1
//
//          partial sums    results
//   0:     b3  b2  b1      b0  b3  b2        0 -> 1 -> 2 -> 3 -> 0         1 -> 2 -> 3 -> 0
//   1:     b0  b3  b2      b1  b0  b3                                      1 <- 2 <- 3 <- 0
//   2:     b1  b0  b3      b2  b1  b0        scan, exscan, in rank order
//   3:     b2  b1  b0      b3  b2  b1        0 -> 1 -> 2 -> 3
//
// Block b starts at rank b+1 and ends at rank b, so its operands are combined in the order b+1, b+2, ... round to b.
//
// Source: P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69 (2009),
// section 3; scan and exscan are pipelined chains. Broadcast and reduce are chain's plans along the ring, which fits
// any topology, with a root anywhere on it. chain itself follows a tree of links.
// Cost of allreduce for n bytes on P ranks: 2(P-1) steps, 2n(P-1)/P bytes over each link to the next rank: the least.
// Scan: P-1 steps for the first segment, n bytes over each link.
#include "collectives/building/tree_flows.hpp"

namespace torii {
namespace {

/// Blocks are counted within a segment's messages, in 16 bits.
constexpr int kRanksMax = 65535;

enum Tag : int { kPartial = 0, kResult = 1 };

/// Partial sums, which only pass through slots.
Stream partial_stream(const PlanRequest& request, int peer, int messages) {
  return {.peer = peer, .tag = kPartial, .messages_per_segment = messages, .wide = request.wide_wire};
}

/// Finished blocks, which can be stored into the receiver's result at once.
Stream result_stream(int peer, int messages) {
  return {.peer = peer, .tag = kResult, .messages_per_segment = messages, .delivery = Delivery::write_in_place};
}

class RingPlan {
 public:
  RingPlan(const PlanRequest& request, int rank)
      : request_(request),
        rank_(rank),
        ranks_(request.topology.ranks()),
        builder_(request, rank, Dealing::block, is_prefix(request.collective) ? 1 : ranks_),
        flows_(builder_.lane().flows) {}

  Plan make() {
    switch (request_.collective) {
      case Collective::scan:
        chain_inclusive();
        break;
      case Collective::exscan:
        chain_exclusive();
        break;
      default:
        travel();
    }
    return builder_.take();
  }

 private:
  int next() const { return (rank_ + 1) % ranks_; }
  int previous() const { return (rank_ + ranks_ - 1) % ranks_; }
  /// Blocks rank + offset, rank + offset - 1, ...
  Walk downwards(int offset, int count) const { return {rank_ + offset, -1, count, ranks_}; }

  void chain_inclusive() {
    Flow flow = {.sources = {{}}, .keep = true, .label = "prefix"};
    if (rank_ != 0) flow.sources = {builder_.in(partial_stream(request_, rank_ - 1, 1)), StreamEnd{}};
    if (rank_ + 1 != ranks_) flow.targets.push_back(builder_.out(partial_stream(request_, rank_ + 1, 1)));
    flows_.push_back(std::move(flow));
  }

  /// The prefix of the ranks before is folded with the own operand for the next rank, and is the result. A message is
  /// taken once, so it comes twice: two streams of one payload. The result comes through slots, since in place it would
  /// overwrite the operand before that is folded.
  void chain_exclusive() {
    const auto prefix_stream = [&](int peer) {
      return Stream{.peer = peer, .tag = kResult, .wide = request_.wide_wire};
    };
    if (rank_ + 1 != ranks_) {
      Flow pass = {.sources = {{}}, .label = "pass on"};
      if (rank_ != 0) pass.sources = {builder_.in(partial_stream(request_, rank_ - 1, 1)), StreamEnd{}};
      if (rank_ + 2 != ranks_) pass.targets.push_back(builder_.out(partial_stream(request_, rank_ + 1, 1)));
      pass.targets.push_back(builder_.out(prefix_stream(rank_ + 1)));
      flows_.push_back(std::move(pass));
    }
    if (rank_ != 0) {
      flows_.push_back({.sources = {builder_.in(prefix_stream(rank_ - 1))}, .keep = true, .label = "prefix"});
    }
  }

  void travel() {
    const int messages = ranks_ - 1;
    const bool sums = combines(request_.collective);
    Flow own = {.walk = downwards(0, 1), .sources = {{}}, .keep = true, .label = "own block"};
    if (sums && messages > 0) {
      const StreamEnd from = builder_.in(partial_stream(request_, previous(), messages));
      const StreamEnd to = builder_.out(partial_stream(request_, next(), messages));
      flows_.push_back({.walk = downwards(-1, 1), .sources = {{}}, .targets = {to}, .label = "first partial"});
      if (messages > 1) {
        flows_.push_back(
            {.walk = downwards(-2, messages - 1), .sources = {from, {}}, .targets = {at(to, 1)}, .label = "partial"});
      }
      own.sources = {at(from, messages - 1), {}};
    }
    if (request_.collective == Collective::reduce_scatter || messages == 0) {
      flows_.push_back(std::move(own));
      return;
    }
    const StreamEnd from = builder_.in(result_stream(previous(), messages));
    const StreamEnd to = builder_.out(result_stream(next(), messages));
    own.targets = {to};
    flows_.push_back(std::move(own));
    if (messages > 1) {
      flows_.push_back({.walk = downwards(-1, messages - 1),
                        .sources = {from},
                        .keep = true,
                        .targets = {at(to, 1)},
                        .label = "result"});
    }
    flows_.push_back(
        {.walk = downwards(-messages, 1), .sources = {at(from, messages - 1)}, .keep = true, .label = "last result"});
  }

  const PlanRequest& request_;
  const int rank_;
  const int ranks_;
  PlanBuilder builder_;
  std::vector<Flow>& flows_;
};

/// The expression of `rank`'s result of a scan or exscan.
ExpressionId prefix_order(const PlanRequest& request, int rank, ExpressionPool& pool) {
  const int last = request.collective == Collective::scan ? rank : rank - 1;
  if (last < 0) return kNoExpression;
  ExpressionId value = pool.leaf(0);
  for (int next = 1; next <= last; ++next) {
    const ExpressionId operands[] = {value, pool.leaf(next)};
    value = pool.fold(operands, next == last || !request.wide_wire);
  }
  return value;
}

ExpressionId order(const PlanRequest& request, int block, ExpressionPool& pool) {
  if (is_prefix(request.collective)) return prefix_order(request, block, pool);
  if (request.collective == Collective::reduce) return chain_order(request, ranks_from_root(request), pool);
  const int ranks = request.topology.ranks();
  ExpressionId value = pool.leaf((block + 1) % ranks);
  for (int step = 2; step <= ranks; ++step) {
    const ExpressionId operands[] = {value, pool.leaf((block + step) % ranks)};
    value = pool.fold(operands, step == ranks || !request.wide_wire);
  }
  return value;
}

/// All ranks of a ring send before they take.
int slots_least(const PlanRequest& request) {
  const bool chain = has_root(request.collective) || is_prefix(request.collective);
  return !chain && request.topology.ranks() > 2 ? 2 : 1;
}

std::string why_not(const PlanRequest& request) {
  const int ranks = request.topology.ranks();
  if (request.collective == Collective::barrier) {
    return "a ring of tokens is the slowest barrier; use node, recursive_doubling or binomial";
  }
  if (is_personalised(request.collective)) {
    return "a ring would pass every block through all ranks in between; use direct";
  }
  if (ranks > kRanksMax) {
    return "ring is for up to " + std::to_string(kRanksMax) + " ranks, there are " + std::to_string(ranks);
  }
  if (request.tuning.slots == 1 && slots_least(request) > 1) {
    return "slots is 1, but all ranks of a ring wait for each other unless there are 2";
  }
  if (is_prefix(request.collective)) {
    const std::string reason = why_not_any(request);
    return reason.empty() ? why_not_canonical(request, order) : reason;
  }
  if (request.determinism == Determinism::canonical && combines(request.collective) && ranks > 1) {
    return "every block is combined in another order, starting where it starts; node and binomial honour canonical";
  }
  return why_not_any(request);
}

Plan draft(const PlanRequest& request, int rank) { return RingPlan(request, rank).make(); }

Plan plan(const PlanRequest& request, int rank) {
  if (has_root(request.collective)) {
    return chain_plan(request, rank, ranks_from_root(request), "chain", "chain");
  }
  Plan result = draft(request, rank);
  set_maxima(result, request, draft, {0, 1 % result.ranks});
  return result;
}

}  // namespace

extern const Algorithm kRing = {
    "ring", "ring of blocks; Patarasuk and Yuan 2009, section 3", why_not, plan, order, nullptr, nullptr, slots_least};

}  // namespace torii
