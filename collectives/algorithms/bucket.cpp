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
// Where several ranks share a node, the i-th of every node does all this for the i-th slice of the vector, on the sums
// of its mates' operands, and hands them its results.
//
// Source: M. Barnett, R. Littlefield, D. Payne, R. van de Geijn, Global Combine Algorithms for 2-D Meshes with Wormhole
// Routing, JPDC 24, 1995 (bucket along rows, then columns); N. Jain, Y. Sabharwal, Optimal Bucket Algorithms for Large
// MPI Collectives on Torus Interconnects, ICS 2010 (all directions at once).
// Cost of allreduce for n bytes on P = X x Y x Z nodes: 2(X+Y+Z-3) rounds; on a torus of D equal extents n(P-1)/(DP)
// bytes over every link in each direction.
// Order: a block begins at the node after its own and goes once round; so do, at every later phase, the sums of the
// phase before. docs/algorithms.md writes it down.
#include <algorithm>

#include "collectives/building/bucket_parts.hpp"
#include "collectives/building/plan_builder.hpp"
#include "collectives/trees/trees.hpp"

namespace torii {
namespace {

/// Messages of a stream are counted in 16 bits.
constexpr int kRanksMax = 65535;

/// Streams of one pair of ranks: of the sums or results of one phase and part, or held from one phase to the next; and
/// between mates operands and results of one part, whose phase is 0.
enum Kind : int { kSums = 0, kHeld = 1, kResults = 2, kGive = 3, kTake = 4, kKinds = 5 };

constexpr std::string_view kSumLabels[] = {"sums 1+", "sums 1-", "sums 2+", "sums 2-", "sums 3+", "sums 3-"};
constexpr std::string_view kResultLabels[] = {"results 1+", "results 1-", "results 2+",
                                              "results 2-", "results 3+", "results 3-"};

/// One part at one rank.
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
  struct Mate {
    StreamEnd operands;  ///< in: for the own slice; out: of the mate's slice
    StreamEnd results;   ///< in: of the mate's slice; out: of the own
  };
  std::vector<Mate> from;  ///< by place on the node, nothing at the own place
  std::vector<Mate> to;
};

/// Blocks are counted slice by slice, there part by part, along the way of the part. Where blocks are ranks', the parts
/// divide each of them.
int block_of(const PlanRequest& request, const Topology& torus, const PartPlan& plan, const Coordinates& owner,
             int slice) {
  const int parts = bucket_parts(torus);
  if (has_block_per_rank(request.collective)) return plan.part.node(owner) * parts + plan.number;
  int number = slice * parts + plan.number;
  for (int phase = 0; phase < plan.part.phases(); ++phase) {
    number = number * plan.part.extent(phase) + owner[static_cast<std::size_t>(phase)];
  }
  return number;
}

class BucketPlan {
 public:
  BucketPlan(const PlanRequest& request, int rank)
      : request_(request),
        grid_(request.topology),
        node_(grid_.node_of(rank)),
        place_(grid_.place_of(rank)),
        sums_(combines(request.collective)),
        gathers_(request.collective != Collective::reduce_scatter),
        blocks_(bucket_parts(grid_.torus) * request.topology.ranks()),
        builder_(request, rank, Dealing::even, blocks_) {
    for (int number = 0; number < bucket_parts(grid_.torus); ++number) {
      parts_.emplace_back(grid_.torus, number, std::max(1, request.tuning.slots - 1));
    }
  }

  Plan make() {
    open_streams();
    for (PartPlan& plan : parts_) {
      const int phases = plan.part.phases();
      if (grid_.per_node > 1) give(plan);
      if (!sums_ || phases == 0) begin(plan);
      for (int phase = 0; sums_ && phase < phases; ++phase) scatter(plan, phase);
      for (int phase = phases - 1; gathers_ && phase >= 0; --phase) gather(plan, phase);
      if (grid_.per_node > 1) take(plan);
    }
    return builder_.take();
  }

 private:
  int tag_of(Kind kind, const PartPlan& plan, int phase) const {
    return (phase * static_cast<int>(parts_.size()) + plan.number) * kKinds + kind;
  }
  Stream stream_of(Kind kind, const PartPlan& plan, int phase, int steps) const {
    return {.peer = grid_.rank_at(plan.part.along(node_, phase, steps), place_),
            .tag = tag_of(kind, plan, phase),
            .messages_per_segment = plan.order.messages(phase),
            .carriage = kind == kResults ? Carriage::land : Carriage::slots,
            .wide = kind == kSums && request_.wide_wire};
  }

  Stream mate_stream(Kind kind, const PartPlan& plan, int place) const {
    return {.peer = grid_.rank_at(node_, place),
            .tag = tag_of(kind, plan, 0),
            .messages_per_segment = plan.order.size(0),
            .carriage = kind == kGive ? Carriage::lend : Carriage::land};
  }

  /// Parts are the innermost: where two nodes are joined by two cables, streams of the two directions take turns.
  void open_streams() {
    const int phases = bucket_dimensions(grid_.torus);
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
    for (PartPlan& plan : parts_) open_mates(plan);
  }

  void open_mates(PartPlan& plan) {
    plan.from.resize(static_cast<std::size_t>(grid_.per_node));
    plan.to.resize(plan.from.size());
    for (int place = 0; place < grid_.per_node; ++place) {
      if (place == place_) continue;
      const auto p = static_cast<std::size_t>(place);
      plan.from[p] = {builder_.in(mate_stream(kGive, plan, place)), builder_.in(mate_stream(kTake, plan, place))};
      plan.to[p] = {builder_.out(mate_stream(kGive, plan, place)), builder_.out(mate_stream(kTake, plan, place))};
    }
  }

  /// The block of an element of `phase`. `back` is 1 for sums, which begin after the node where they end, and 0 for
  /// results, which begin where they are.
  int block(const PartPlan& plan, int phase, int key, int back, int slice) const {
    Coordinates owner = plan.part.positions(node_);
    for (int at = plan.part.phases() - 1; at >= phase; --at) {
      const int extent = plan.part.extent(at);
      int& position = owner[static_cast<std::size_t>(at)];
      position = (position + 2 * extent - back - key % extent) % extent;
      key /= extent;
    }
    return block_of(request_, grid_.torus, plan, owner, slice);
  }
  int block(const PartPlan& plan, int phase, int key, int back) const { return block(plan, phase, key, back, place_); }

  /// The operands of all ranks of the node for an element of phase 0.
  void add_operands(Flow& step, const PartPlan& plan, int key) const {
    for (int place = 0; place < grid_.per_node; ++place) {
      const auto p = static_cast<std::size_t>(place);
      step.sources.push_back(place == place_ ? StreamEnd{} : at(plan.from[p].operands, plan.order.place(0, key)));
    }
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
    for (int place = 0; place < grid_.per_node; ++place) {
      if (place == place_) continue;
      step.targets.push_back(at(plan.to[static_cast<std::size_t>(place)].results, plan.order.place(0, key)));
    }
  }

  /// The own operands for all mates' slices, and all their results, in the order in which they are wanted and come.
  void give(const PartPlan& plan) {
    StepWriter steps(builder_.lane(), blocks_);
    for (const int key : plan.order.elements(0)) {
      for (int place = 0; place < grid_.per_node; ++place) {
        if (place == place_) continue;
        const StreamEnd to = plan.to[static_cast<std::size_t>(place)].operands;
        steps.add(block(plan, 0, key, 1, place),
                  {.sources = {{}}, .targets = {at(to, plan.order.place(0, key))}, .label = "give"});
      }
    }
  }

  void take(const PartPlan& plan) {
    StepWriter steps(builder_.lane(), blocks_);
    for (const int key : plan.order.elements(0)) {
      for (int place = 0; place < grid_.per_node; ++place) {
        if (place == place_) continue;
        const StreamEnd from = plan.from[static_cast<std::size_t>(place)].results;
        steps.add(block(plan, 0, key, 0, place),
                  {.sources = {at(from, plan.order.place(0, key))}, .keep = true, .label = "take"});
      }
    }
  }

  /// The own block of a node that has no ring to sum it on.
  void begin(const PartPlan& plan) {
    Flow step = {.keep = true, .label = kResultLabels[plan.number]};
    add_operands(step, plan, 0);
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
      if (phase == 0) add_operands(step, plan, key);
      if (phase > 0) step.sources.push_back(at(ring.held.source, order.held(phase, key)));
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
  const Grid grid_;
  const int node_;
  const int place_;  ///< among the ranks of the node, and number of the slice
  const bool sums_;
  const bool gathers_;
  const int blocks_;
  PlanBuilder builder_;
  std::vector<PartPlan> parts_;
};

std::string why_not(const PlanRequest& request) {
  std::string reason =
      why_not_any("bucket", {Collective::allreduce, Collective::all_gather, Collective::reduce_scatter}, request);
  if (!reason.empty()) return reason;
  const int ranks = request.topology.ranks();
  if (ranks > kRanksMax) {
    return "bucket is for up to " + std::to_string(kRanksMax) + " ranks, there are " + std::to_string(ranks);
  }
  if (has_block_per_rank(request.collective) && request.topology.kind() != Topology::Kind::node &&
      request.topology.per_node() > 1) {
    return "on nodes of several ranks bucket does allreduce only; ring serves " + std::string(name(request.collective));
  }
  if (has_block_per_rank(request.collective) && request.topology.is_mapped()) {
    return "under a rank map bucket does allreduce only; ring serves " + std::string(name(request.collective));
  }
  const Coordinates extents = Grid(request.topology).torus.extents();
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
  BucketExpression(const PlanRequest& request, const Grid& grid, const BucketPart& part, const Coordinates& owner,
                   ExpressionPool& pool)
      : request_(request), grid_(grid), part_(part), owner_(owner), pool_(pool) {}

  /// The sum over the rings before `phase`, at the node of these positions.
  ExpressionId before(int phase, Coordinates at) const {
    std::vector<ExpressionId> operands;
    if (phase == 0) {
      add_operands(0, at, operands);
      return pool_.fold(operands, part_.phases() == 0 || !request_.wide_wire);
    }
    const int ring = phase - 1;
    const auto p = static_cast<std::size_t>(ring);
    const int extent = part_.extent(ring);
    at[p] = (owner_[p] + 1) % extent;
    ExpressionId value = before(ring, at);
    for (int step = 2; step <= extent; ++step) {
      at[p] = (owner_[p] + step) % extent;
      operands = {value};
      add_operands(ring, at, operands);
      value = pool_.fold(operands, !request_.wide_wire || (phase == part_.phases() && step == extent));
    }
    return value;
  }

 private:
  /// What a node adds to what comes round the ring: the operands of its ranks, or the sum that it has held.
  void add_operands(int ring, const Coordinates& at, std::vector<ExpressionId>& operands) const {
    if (ring > 0) {
      operands.push_back(before(ring, at));
      return;
    }
    const int node = part_.node(at);
    for (int place = 0; place < grid_.per_node; ++place) operands.push_back(pool_.leaf(grid_.rank_at(node, place)));
  }

  const PlanRequest& request_;
  const Grid& grid_;
  const BucketPart& part_;
  const Coordinates& owner_;
  ExpressionPool& pool_;
};

ExpressionId order(const PlanRequest& request, int block, ExpressionPool& pool) {
  const Grid grid(request.topology);
  const int parts = bucket_parts(grid.torus);
  const bool is_per_rank = has_block_per_rank(request.collective);
  const BucketPart part(grid.torus, is_per_rank ? block % parts : block / grid.torus.ranks() % parts);
  Coordinates owner = {0, 0, 0};
  if (is_per_rank) {
    owner = part.positions(block / parts);
  } else {
    for (int phase = part.phases() - 1; phase >= 0; --phase) {
      owner[static_cast<std::size_t>(phase)] = block % part.extent(phase);
      block /= part.extent(phase);
    }
  }
  return BucketExpression(request, grid, part, owner, pool).before(part.phases(), owner);
}

}  // namespace

extern const Algorithm kBucket = {"bucket", "rings along all dimensions; Jain and Sabharwal, ICS 2010", why_not, plan,
                                  order};

}  // namespace torii
