// SPDX-License-Identifier: Apache-2.0
// bucket: rings along every dimension of a torus and in both directions at once, so that all links carry an equal load.
//
//   3 x 3 torus, four parts      part x+                                  part y+ at the same time
//   of the vector:
//   . - . - .    x+  x-          rounds along x: rows of blocks grow      the same with x and y exchanged;
//   |   |   |    y+  y-          rounds along y: blocks grow to sums      x- and y- go the other way round
//   . - . - .                    and back: results along y, then x
//   |   |   |
//   . - . - .
//
// Each part has a block per node. In its first phase it is reduce-scattered round the rings of one dimension: of all
// blocks each node keeps those that end at nodes of its own coordinate. These go round the next dimension, and so on;
// the all-gather goes back through the dimensions. Part i begins with dimension i, hence all links are busy always.
//
// Source: M. Barnett, R. Littlefield, D. Payne, R. van de Geijn, Global Combine Algorithms for 2-D Meshes with Wormhole
// Routing, JPDC 24, 1995 (bucket along rows, then columns); N. Jain, Y. Sabharwal, Optimal Bucket Algorithms for Large
// MPI Collectives on Torus Interconnects, ICS 2010 (all directions at once).
// Cost of allreduce for n bytes on P = X x Y x Z nodes: 2(X+Y+Z-3) rounds; on a torus of D equal extents n(P-1)/(DP)
// bytes over every link in each direction: the least there is when nodes only send what they have combined.
// Order: a block begins at the node after its own and goes once round; so do, at every later phase, the sums of the
// phase before. docs/algorithms.md writes it down.
#include <algorithm>

#include "collectives/algorithms.hpp"
#include "collectives/bucket_parts.hpp"
#include "collectives/plan_builder.hpp"
#include "collectives/trees.hpp"

namespace torii {
namespace {

/// Messages of a stream are counted in 16 bits.
constexpr int kRanksMax = 65535;

/// Streams of one pair of ranks: of the sums or results of one phase and part, or held from one phase to the next.
enum Kind : int { kSums = 0, kHeld = 1, kResults = 2, kKinds = 3 };

constexpr std::string_view kSumLabels[] = {"sums 1+", "sums 1-", "sums 2+", "sums 2-", "sums 3+", "sums 3-"};
constexpr std::string_view kResultLabels[] = {"results 1+", "results 1-", "results 2+",
                                              "results 2-", "results 3+", "results 3-"};

/// Ranks that share a node have no links; they are given those of a torus.
Topology shape_of(const PlanRequest& request) {
  const bool is_node = request.topology.kind() == Topology::Kind::node;
  return is_node ? nearly_cubic_torus(request.topology.ranks()) : request.topology;
}

/// One part at one node.
struct PartPlan {
  struct Ring {
    StreamEnd sums_in;
    StreamEnd sums_out;
    StreamEnd results_in;
    StreamEnd results_out;
    PlanBuilder::Onward held;  ///< what has been summed on earlier rings and waits for its round
  };
  PartPlan(const Topology& torus, int part_number, int group_most)
      : number(part_number), part(torus, part_number), order(part, group_most), rings(index(part.phases())) {}
  static std::size_t index(int value) { return static_cast<std::size_t>(value); }
  Ring& ring(int phase) { return rings[index(phase)]; }
  const Ring& ring(int phase) const { return rings[index(phase)]; }

  int number;
  BucketPart part;
  BucketOrder order;
  std::vector<Ring> rings;
};

/// Blocks are counted part by part, along the way of the part; where blocks are ranks', the parts divide each of them.
int block_of(const PlanRequest& request, const Topology& torus, const PartPlan& plan, const Coordinates& owner) {
  if (has_block_per_rank(request.collective)) {
    return plan.part.node(owner) * bucket_parts(torus) + plan.number;
  }
  int number = plan.number;
  for (int phase = 0; phase < plan.part.phases(); ++phase) {
    number = number * plan.part.extent(phase) + owner[static_cast<std::size_t>(phase)];
  }
  return number;
}

class BucketPlan {
 public:
  BucketPlan(const PlanRequest& request, int rank)
      : request_(request),
        node_(rank),
        torus_(shape_of(request)),
        sums_(combines(request.collective)),
        gathers_(request.collective != Collective::reduce_scatter),
        blocks_(bucket_parts(torus_) * torus_.ranks()),
        builder_(request, rank, Dealing::even, blocks_) {
    for (int number = 0; number < bucket_parts(torus_); ++number) {
      parts_.emplace_back(torus_, number, std::max(1, request.tuning.slots - 1));
    }
  }

  Plan make() {
    open_streams();
    for (PartPlan& plan : parts_) {
      const int phases = plan.part.phases();
      if (!sums_ || phases == 0) begin(plan);
      for (int phase = 0; sums_ && phase < phases; ++phase) scatter(plan, phase);
      for (int phase = phases - 1; gathers_ && phase >= 0; --phase) gather(plan, phase);
    }
    return builder_.take();
  }

 private:
  Stream stream_of(Kind kind, const PartPlan& plan, int phase, int steps) const {
    const int parts = static_cast<int>(parts_.size());
    return {.peer = plan.part.along(node_, phase, steps),
            .tag = (phase * parts + plan.number) * kKinds + kind,
            .messages_per_segment = plan.order.messages(phase),
            .carriage = kind == kResults ? Carriage::land : Carriage::slots,
            .wide = kind == kSums && request_.wide_wire};
  }

  /// Parts are the innermost: where two nodes are joined by two cables, streams of the two directions take turns.
  void open_streams() {
    const int phases = bucket_dimensions(torus_);
    for (int phase = 0; sums_ && phase < phases; ++phase) {
      for (PartPlan& plan : parts_) {
        plan.ring(phase).sums_in = builder_.in(stream_of(kSums, plan, phase, -1));
        plan.ring(phase).sums_out = builder_.out(stream_of(kSums, plan, phase, 1));
      }
    }
    for (int phase = 0; gathers_ && phase < phases; ++phase) {
      for (PartPlan& plan : parts_) {
        plan.ring(phase).results_in = builder_.in(stream_of(kResults, plan, phase, -1));
        plan.ring(phase).results_out = builder_.out(stream_of(kResults, plan, phase, 1));
      }
    }
    for (int phase = 1; sums_ && phase < phases; ++phase) {
      for (PartPlan& plan : parts_) {
        const Stream like = stream_of(kHeld, plan, phase, 0);
        plan.ring(phase).held = builder_.onward(like.tag, like.messages_per_segment, true);
      }
    }
  }

  /// The block of an element of `phase`. `back` is 1 for sums, which begin after the node where they end, and 0 for
  /// results, which begin where they are.
  int block(const PartPlan& plan, int phase, int key, int back) const {
    Coordinates owner = plan.part.positions(node_);
    for (int at = plan.part.phases() - 1; at >= phase; --at) {
      const int extent = plan.part.extent(at);
      int& position = owner[static_cast<std::size_t>(at)];
      position = (position + 2 * extent - back - key % extent) % extent;
      key /= extent;
    }
    return block_of(request_, torus_, plan, owner);
  }

  /// Where a sum goes that has been round all rings before `phase`: straight on, or it waits for its round, or it is
  /// the sum of all.
  void hand_on(Flow& step, const PartPlan& plan, int phase, int key) const {
    if (phase == plan.part.phases()) {
      step.keep = true;
      if (gathers_) add_receivers(step, plan, phase, key);
    } else if (plan.order.round(phase, key) == 0) {
      step.targets = {at(plan.ring(phase).sums_out, plan.order.message(phase, key))};
    } else {
      step.targets = {at(plan.ring(phase).held.target, plan.order.held(phase, key))};
      step.keep = plan.ring(phase).held.keep;
    }
  }

  /// Where a result goes that has come round the ring of `phase`, or has been made here: on along this ring, and round
  /// those of all phases before, in whose order it has the same key.
  void add_receivers(Flow& step, const PartPlan& plan, int phase, int key) const {
    if (phase < plan.part.phases() && plan.order.round(phase, key) != plan.order.last_round(phase)) {
      step.targets.push_back(at(plan.ring(phase).results_out, plan.order.message(phase, key)));
    }
    while (--phase >= 0) step.targets.push_back(at(plan.ring(phase).results_out, plan.order.message(phase, key)));
  }

  /// The own block of a node that has nothing to sum.
  void begin(const PartPlan& plan) {
    Flow step = {.sources = {{}}, .keep = true, .label = kResultLabels[plan.number]};
    if (gathers_) add_receivers(step, plan, plan.part.phases(), 0);
    StepWriter(builder_.lane(), blocks_).add(block(plan, plan.part.phases(), 0, 0), std::move(step));
  }

  void scatter(const PartPlan& plan, int phase) {
    const BucketOrder& order = plan.order;
    const PartPlan::Ring& ring = plan.ring(phase);
    StepWriter steps(builder_.lane(), blocks_);
    for (const int key : order.elements(phase)) {
      const int round = order.round(phase, key);
      if (phase > 0 && round == 0) continue;  // sent on by the phase before
      Flow step = {.label = kSumLabels[plan.number]};
      if (round > 0) step.sources.push_back(at(ring.sums_in, order.message(phase, key - order.size(phase + 1))));
      step.sources.push_back(phase == 0 ? StreamEnd{} : at(ring.held.source, order.held(phase, key)));
      if (round < order.last_round(phase)) {
        step.targets = {at(ring.sums_out, order.message(phase, key))};
      } else {
        hand_on(step, plan, phase + 1, key % order.size(phase + 1));
      }
      steps.add(block(plan, phase, key, 1), std::move(step));
    }
  }

  void gather(const PartPlan& plan, int phase) {
    const BucketOrder& order = plan.order;
    StepWriter steps(builder_.lane(), blocks_);
    for (const int key : order.elements(phase)) {
      if (order.round(phase, key) == 0) continue;
      const int message = order.message(phase, key - order.size(phase + 1));
      Flow step = {
          .sources = {at(plan.ring(phase).results_in, message)}, .keep = true, .label = kResultLabels[plan.number]};
      add_receivers(step, plan, phase, key);
      steps.add(block(plan, phase, key, 0), std::move(step));
    }
  }

  const PlanRequest& request_;
  const int node_;
  const Topology torus_;
  const bool sums_;
  const bool gathers_;
  const int blocks_;
  PlanBuilder builder_;
  std::vector<PartPlan> parts_;
};

std::string why_not(const PlanRequest& request) {
  std::string reason = no_such_collective(
      "bucket", {Collective::allreduce, Collective::all_gather, Collective::reduce_scatter}, request.collective);
  if (reason.empty()) reason = why_not_any(request);
  if (!reason.empty()) return reason;
  const int ranks = request.topology.ranks();
  if (ranks > kRanksMax) {
    return "bucket is for up to " + std::to_string(kRanksMax) + " ranks, there are " + std::to_string(ranks);
  }
  const Coordinates extents = shape_of(request).extents();
  const int longest = *std::max_element(extents.begin(), extents.end());
  if (longest > 2 && request.tuning.slots < 2) {
    return "slots is 1, but all ranks of a ring of " + std::to_string(longest) +
           " wait for each other unless there are 2";
  }
  if (request.determinism == Determinism::canonical && combines(request.collective) && ranks > 1) {
    return "every block is combined in another order, starting where it starts; node and binomial honour canonical";
  }
  return "";
}

/// All ranks have as many streams of each kind.
Plan plan(const PlanRequest& request, int rank) {
  Plan result = BucketPlan(request, rank).make();
  result.in_streams_max = static_cast<int>(result.in.size());
  result.out_streams_max = static_cast<int>(result.out.size());
  return result;
}

/// The sums of one block, as nested as the phases are.
class BucketExpression {
 public:
  BucketExpression(const PlanRequest& request, const BucketPart& part, const Coordinates& owner, ExpressionPool& pool)
      : request_(request), part_(part), owner_(owner), pool_(pool) {}

  /// The sum over the rings before `phase`, at the node of these positions.
  ExpressionId before(int phase, Coordinates at) const {
    if (phase == 0) return pool_.leaf(part_.node(at));
    const int ring = phase - 1;
    const auto p = static_cast<std::size_t>(ring);
    const int extent = part_.extent(ring);
    ExpressionId value = kNoExpression;
    for (int step = 1; step <= extent; ++step) {
      at[p] = (owner_[p] + step) % extent;
      const ExpressionId operands[] = {value, before(ring, at)};
      const bool is_last = phase == part_.phases() && step == extent;
      value = step == 1 ? operands[1] : pool_.fold(operands, is_last || !request_.wide_wire);
    }
    return value;
  }

 private:
  const PlanRequest& request_;
  const BucketPart& part_;
  const Coordinates& owner_;
  ExpressionPool& pool_;
};

ExpressionId order(const PlanRequest& request, int block, ExpressionPool& pool) {
  const Topology torus = shape_of(request);
  const int parts = bucket_parts(torus);
  const bool is_per_rank = has_block_per_rank(request.collective);
  const BucketPart part(torus, is_per_rank ? block % parts : block / torus.ranks());
  Coordinates owner = {0, 0, 0};
  if (is_per_rank) {
    owner = part.positions(block / parts);
  } else {
    for (int phase = part.phases() - 1; phase >= 0; --phase) {
      owner[static_cast<std::size_t>(phase)] = block % part.extent(phase);
      block /= part.extent(phase);
    }
  }
  return BucketExpression(request, part, owner, pool).before(part.phases(), owner);
}

}  // namespace

const Algorithm kBucket = {"bucket", "rings along all dimensions; Jain and Sabharwal, ICS 2010", why_not, plan, order};

}  // namespace torii
