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
// Each part has a block per node. In its first phase it is reduce-scattered round the rings of one dimension. Of all
// blocks each node keeps those that end at nodes of its own coordinate. These go round the next dimension, and so on;
// the all-gather goes back through the dimensions. Part i begins with dimension i, hence all links are busy always.
// If several ranks share a node, the i-th rank of every node does all this for the i-th slice of the vector. It works
// on the sums of its mates' operands, and hands its mates the results.
//
// Source: M. Barnett, R. Littlefield, D. Payne, R. van de Geijn, Global Combine Algorithms for 2-D Meshes with Wormhole
// Routing, JPDC 24, 1995 (bucket along rows, then columns); N. Jain, Y. Sabharwal, Optimal Bucket Algorithms for Large
// MPI Collectives on Torus Interconnects, ICS 2010 (all directions at once).
// Cost of allreduce for n bytes on P = X x Y x Z nodes: 2(X+Y+Z-3) rounds. On a torus of D equal extents n(P-1)/(DP)
// bytes cross every link in each direction.
// Order: a block begins at the node after its own and goes once round. So do, at every later phase, the sums of the
// phase before.
#include <algorithm>

#include "collectives/building/bucket_parts.hpp"
#include "collectives/building/steps.hpp"
#include "collectives/trees/trees.hpp"
#include "runtime/base/index.hpp"

namespace torii {
namespace {

/// Messages of a stream are counted in 16 bits.
constexpr int kRanksMax = 65535;

/// The streams of one pair of ranks. They carry the sums or results of one phase and part, and the values held from one
/// phase to the next. Between mates, they carry operands and results of one part, whose phase is 0.
enum Kind : int { kSums = 0, kHeld = 1, kResults = 2, kGive = 3, kTake = 4, kKinds = 5 };

constexpr std::string_view kSumLabels[] = {"sums 1+", "sums 1-", "sums 2+", "sums 2-", "sums 3+", "sums 3-"};
constexpr std::string_view kResultLabels[] = {"results 1+", "results 1-", "results 2+",
                                              "results 2-", "results 3+", "results 3-"};

/// The elements of a phase as blocks of the vector, and which of them cross this rank's streams, in order. An element
/// comes in unless it begins here, and goes out unless it ends here.
struct Crossing {
  std::vector<int> block;  ///< by key
  std::vector<int> in;
  std::vector<int> out;
};

/// One part at one rank.
struct Part {
  Part(const Topology& torus, int part_number, int group_most)
      : number(part_number), way(torus, part_number), order(way, group_most) {}
  int phases() const { return way.phases(); }

  int number;
  BucketPart way;
  BucketOrder order;
  std::vector<Crossing> sums;                       ///< by phase
  std::vector<Crossing> results;                    ///< by phase
  std::vector<std::vector<int>> operands_of_slice;  ///< all elements of phase 0 as sums and as results, by slice
  std::vector<std::vector<int>> results_of_slice;
};

/// The most blocks that go round together: as many as the slots allow.
int group_most(const PlanRequest& request) { return std::max(1, request.tuning.slots - 1); }

class BucketPlan {
 public:
  BucketPlan(const PlanRequest& request, int rank)
      : request_(request),
        grid_(request.topology),
        node_(grid_.node_of(rank)),
        place_(grid_.place_of(rank)),
        sums_(combines(request.collective)),
        gathers_(request.collective != Collective::reduce_scatter),
        steps_(request, rank, bucket_parts(grid_.torus) * request.topology.ranks()) {
    for (int number = 0; number < bucket_parts(grid_.torus); ++number) {
      parts_.emplace_back(grid_.torus, number, group_most(request));
    }
    for (Part& part : parts_) find_blocks(part);
  }

  Plan make() {
    open_streams();
    for (const Part& part : parts_) {
      if (grid_.per_node > 1) give(part);
      if (!sums_ || part.phases() == 0) begin(part);
      for (int phase = 0; sums_ && phase < part.phases(); ++phase) scatter(part, phase);
      for (int phase = part.phases() - 1; gathers_ && phase >= 0; --phase) gather(part, phase);
      if (grid_.per_node > 1) take(part);
    }
    return steps_.take();
  }

 private:
  /// The block of an element of `phase`. `back` is 1 for sums, which begin after the node where they end, and 0 for
  /// results, which begin where they are. Blocks are counted slice by slice, there part by part, along the way of the
  /// part. Where blocks are ranks', the parts divide each of them.
  int block(const Part& part, int phase, int key, int back, int slice) const {
    Coordinates owner = part.way.positions(node_);
    for (int at = part.phases() - 1; at >= phase; --at) {
      const int extent = part.way.extent(at);
      int& position = owner[index(at)];
      position = (position + 2 * extent - back - key % extent) % extent;
      key /= extent;
    }
    const int parts = static_cast<int>(parts_.size());
    if (has_block_per_rank(request_.collective)) return part.way.node(owner) * parts + part.number;
    int number = slice * parts + part.number;
    for (int at = 0; at < part.phases(); ++at) number = number * part.way.extent(at) + owner[index(at)];
    return number;
  }

  Crossing crossing(const Part& part, int phase, int back) const {
    Crossing of;
    of.block.resize(index(part.order.size(phase)));
    for (const int key : part.order.elements(phase)) {
      const int number = of.block[index(key)] = block(part, phase, key, back, place_);
      if (part.order.round(phase, key) != 0) of.in.push_back(number);
      if (part.order.round(phase, key) != part.order.last_round(phase)) of.out.push_back(number);
    }
    return of;
  }

  void find_blocks(Part& part) const {
    for (int phase = 0; phase < part.phases(); ++phase) {
      part.sums.push_back(crossing(part, phase, 1));
      part.results.push_back(crossing(part, phase, 0));
    }
    for (int slice = 0; slice < grid_.per_node; ++slice) {
      part.operands_of_slice.emplace_back();
      part.results_of_slice.emplace_back();
      for (const int key : part.order.elements(0)) {
        part.operands_of_slice.back().push_back(block(part, 0, key, 1, slice));
        part.results_of_slice.back().push_back(block(part, 0, key, 0, slice));
      }
    }
  }

  int tag_of(Kind kind, const Part& part, int phase) const {
    return (phase * static_cast<int>(parts_.size()) + part.number) * kKinds + kind;
  }
  /// To the next node of a ring (`steps` 1), or from the one before (-1).
  Link ring(Kind kind, const Part& part, int phase, int steps) const {
    const Crossing& of = (kind == kSums ? part.sums : part.results)[index(phase)];
    return {{.peer = grid_.rank_at(part.way.along(node_, phase, steps), place_),
             .tag = tag_of(kind, part, phase),
             .delivery = kind == kResults ? Delivery::write_in_place : Delivery::through_slots,
             .wide = kind == kSums && request_.wide_wire},
            steps < 0 ? of.in : of.out};
  }
  /// A sum of earlier rings, which waits here for its round; in that round it is added to the incoming sum.
  Held held(const Part& part, int phase) const { return {tag_of(kHeld, part, phase), part.sums[index(phase)].in}; }
  /// Operands or results of a slice, to the mate at `place` or from there.
  Link mate(Kind kind, const Part& part, int place, int slice) const {
    return {{.peer = grid_.rank_at(node_, place),
             .tag = tag_of(kind, part, 0),
             .delivery = kind == kGive ? Delivery::read_in_place : Delivery::write_in_place},
            (kind == kGive ? part.operands_of_slice : part.results_of_slice)[index(slice)]};
  }

  /// Parts are the innermost: where two nodes are joined by two cables, streams of the two directions take turns.
  void open_streams() {
    const int phases = bucket_dimensions(grid_.torus);
    for (const Kind kind : {kSums, kResults}) {
      if (!(kind == kSums ? sums_ : gathers_)) continue;
      for (int phase = 0; phase < phases; ++phase) {
        for (const Part& part : parts_) {
          steps_.open_in(ring(kind, part, phase, -1));
          steps_.open_out(ring(kind, part, phase, 1));
        }
      }
    }
    for (int phase = 1; sums_ && phase < phases; ++phase) {
      for (const Part& part : parts_) steps_.open(held(part, phase));
    }
    for (const Part& part : parts_) {
      for (int place = 0; place < grid_.per_node; ++place) {
        if (place == place_) continue;
        steps_.open_in(mate(kGive, part, place, place_));
        steps_.open_in(mate(kTake, part, place, place));
        steps_.open_out(mate(kGive, part, place, place));
        steps_.open_out(mate(kTake, part, place, place_));
      }
    }
  }

  /// The operands of all ranks of the node for an element of phase 0.
  void combine_operands(const Part& part) {
    for (int place = 0; place < grid_.per_node; ++place) {
      place == place_ ? steps_.combine(Steps::own()) : steps_.combine(mate(kGive, part, place, place_));
    }
  }

  /// Sends on a sum that has been round all rings before `phase`, at once or in its round, or keeps it as the result.
  void hand_on(const Part& part, int phase, int key) {
    if (phase == part.phases()) {
      steps_.keep();
      if (gathers_) send_results(part, phase, key);
    } else if (part.order.round(phase, key) == 0) {
      steps_.send(ring(kSums, part, phase, 1));
    } else {
      steps_.hold(held(part, phase));
    }
  }

  /// Sends on a result that has come round the ring of `phase`, or has been made here. The result goes on along this
  /// ring, and round the rings of all phases before, in whose order it has the same key.
  void send_results(const Part& part, int phase, int key) {
    if (phase < part.phases() && part.order.round(phase, key) != part.order.last_round(phase)) {
      steps_.send(ring(kResults, part, phase, 1));
    }
    while (--phase >= 0) steps_.send(ring(kResults, part, phase, 1));
    for (int place = 0; place < grid_.per_node; ++place) {
      if (place != place_) steps_.send(mate(kTake, part, place, place_));
    }
  }

  /// The own operands for all mates' slices, and all their results, in the order in which they are wanted and come.
  void give(const Part& part) {
    steps_.lane();
    for (std::size_t i = 0; i < part.operands_of_slice.front().size(); ++i) {
      for (int place = 0; place < grid_.per_node; ++place) {
        if (place == place_) continue;
        const Link to = mate(kGive, part, place, place);
        steps_.begin("give", to.blocks[i]).combine(Steps::own()).send(to);
      }
    }
  }

  void take(const Part& part) {
    steps_.lane();
    for (std::size_t i = 0; i < part.results_of_slice.front().size(); ++i) {
      for (int place = 0; place < grid_.per_node; ++place) {
        if (place == place_) continue;
        const Link from = mate(kTake, part, place, place);
        steps_.begin("take", from.blocks[i]).combine(from).keep();
      }
    }
  }

  /// The own block of a node that has no ring to sum it on.
  void begin(const Part& part) {
    steps_.lane();
    steps_.begin(kResultLabels[part.number], block(part, part.phases(), 0, 0, place_));
    combine_operands(part);
    steps_.keep();
    if (gathers_) send_results(part, part.phases(), 0);
  }

  void scatter(const Part& part, int phase) {
    const BucketOrder& order = part.order;
    steps_.lane();
    for (const int key : order.elements(phase)) {
      const int round = order.round(phase, key);
      if (phase > 0 && round == 0) continue;  // sent on by the phase before
      steps_.begin(kSumLabels[part.number], part.sums[index(phase)].block[index(key)]);
      if (round > 0) steps_.combine(ring(kSums, part, phase, -1));
      if (phase == 0) combine_operands(part);
      if (phase > 0) steps_.combine(held(part, phase));
      if (round < order.last_round(phase)) {
        steps_.send(ring(kSums, part, phase, 1));
      } else {
        hand_on(part, phase + 1, key % order.size(phase + 1));
      }
    }
  }

  void gather(const Part& part, int phase) {
    steps_.lane();
    for (const int key : part.order.elements(phase)) {
      if (part.order.round(phase, key) == 0) continue;
      steps_.begin(kResultLabels[part.number], part.results[index(phase)].block[index(key)]);
      steps_.combine(ring(kResults, part, phase, -1)).keep();
      send_results(part, phase, key);
    }
  }

  const PlanRequest& request_;
  const Grid grid_;
  const int node_;
  const int place_;  ///< among the ranks of the node, and number of the slice
  const bool sums_;
  const bool gathers_;
  Steps steps_;
  std::vector<Part> parts_;
};

int slots_least(const PlanRequest& request) {
  return bucket_slots(Grid(request.topology).torus, group_most(request), combines(request.collective));
}

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
  if (request.tuning.slots < slots_least(request)) {
    const Coordinates extents = Grid(request.topology).torus.extents();
    return "slots is 1, but all ranks of a ring of " + std::to_string(*std::ranges::max_element(extents)) +
           " wait for each other unless there are 2";
  }
  if (request.determinism == Determinism::canonical && combines(request.collective) && ranks > 1) {
    return "every block is combined in another order, starting where it starts; node and binomial honour canonical";
  }
  return "";
}

Plan plan(const PlanRequest& request, int rank) { return BucketPlan(request, rank).make(); }

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
    const auto p = index(ring);
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
  /// A node's part in a sum that comes round the ring: the operands of its ranks, or the sum that it has held.
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
      owner[index(phase)] = block % part.extent(phase);
      block /= part.extent(phase);
    }
  }
  return BucketExpression(request, grid, part, owner, pool).before(part.phases(), owner);
}

}  // namespace

extern const Algorithm kBucket = {"bucket", "rings along all dimensions; Jain and Sabharwal, ICS 2010",
                                  why_not,  plan,
                                  order,    nullptr,
                                  nullptr,  slots_least,
                                  12};

}  // namespace torii
