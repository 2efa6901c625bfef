// SPDX-License-Identifier: Apache-2.0
// Runs plans under the explorer. This file is instrumented as the code under test is, so what the caller of a
// collective does to its vectors is seen too.
#include "tests/exploration/plan_world.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/fabric/words.hpp"
#include "runtime/plan/ring_rules.hpp"

namespace torii::exploration {
namespace {

constexpr std::size_t kVectorBytes = 8192;
/// The size of entries between nodes, for whole segments.
constexpr int kSize = 1;
constexpr std::uint64_t kVectorsOffset = kGroundBytes - 2 * kVectorBytes;

/// No two elements of any ranks, calls and positions are alike, nor any two of their sums.
std::int64_t value_of(int rank, std::size_t call, std::size_t element) {
  return (std::int64_t{1} << (16 * rank)) * static_cast<std::int64_t>(1 + call * 512 + element);
}

void fold_sum(const kernels::Operands& operands, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t sum = 0;
    for (int s = 0; s < operands.source_count; ++s) sum += static_cast<const std::int64_t*>(operands.sources[s])[i];
    for (int t = 0; t < operands.target_count; ++t) {
      kernels::copy(static_cast<std::int64_t*>(operands.targets[t]) + i, &sum, sizeof(sum),
                    (operands.non_temporal_targets >> t & 1U) != 0);
    }
  }
}

CallShape shape_of(const PlanCase& what, const Call& call) {
  CallShape shape;
  const Plan& plan = what.plans[0];
  shape.type = Type::i64;
  shape.element_bytes = shape.unit_bytes = sizeof(std::int64_t);
  const std::size_t total_bytes = call.count * sizeof(std::int64_t);
  const std::size_t block_bytes =
      is_personalised(what.collective) ? total_bytes / static_cast<std::size_t>(plan.blocks) : 0;
  if (plan.exchange.exists()) shape.block_bytes = block_bytes;
  shape.layout = Layout(plan.dealing, total_bytes, plan.blocks, what.tuning.segment_bytes, block_bytes);
  shape.fold = fold_sum;
  shape.non_temporal = call.past_caches;
  shape.signature = static_cast<std::uint32_t>(0x1235 + 2 * call.count);
  return shape;
}

/// The blocks of the shape, as a caller gives them whose blocks may be unequal.
ExchangeBlocks blocks_of(const CallShape& shape, int ranks) {
  ExchangeBlocks blocks;
  blocks.send_bytes.assign(static_cast<std::size_t>(ranks), shape.block_bytes);
  for (int rank = 0; rank < ranks; ++rank) {
    blocks.send_offsets.push_back(rank * static_cast<std::int64_t>(shape.block_bytes));
  }
  blocks.take_bytes = blocks.send_bytes;
  blocks.take_offsets = blocks.send_offsets;
  return blocks;
}

/// A team would change a plan until it fits into its rings, or its calls would wait for room for ever.
bool fits(const PlanCase& what, const RingSizes& sizes) {
  return std::ranges::all_of(what.plans, [&](const Plan& plan) {
    return binds_to_rings(plan, {1, rings_of(plan)}, what.tuning.segment_bytes, Widening::none, sizes);
  });
}

}  // namespace

struct PlanWorld::Rank {
  explicit Rank(Transport& used) : transport(used), execution(used) {}

  int rank = 0;
  Transport& transport;
  std::unique_ptr<TeamRings> rings;
  std::vector<std::unique_ptr<InstalledPlan>> plans;  ///< by Call::plan
  std::vector<std::unique_ptr<LinearProgram>> programs;
  Execution execution;
  CallBuffers buffers;
  std::vector<ExchangeBlocks> blocks;  ///< by call
  std::vector<std::uint64_t> told;     ///< places of entries, from where they are put
  PutOwner told_puts;
  std::int64_t* input = nullptr;
  std::int64_t* result = nullptr;
};

PlanWorld::PlanWorld(PlanCase what) : what_(std::move(what)) {
  const auto fits_here = [&](const PlanCase& one) { return fits(one, what_.rings); };
  if (!fits(what_, what_.rings) || !std::ranges::all_of(what_.others, fits_here)) {
    throw Error(Status::internal, what_.name + ": a plan does not fit into the rings");
  }
  for (const Call& call : what_.calls) shapes_.push_back(shape_of(case_of(call), call));
}

PlanWorld::~PlanWorld() = default;

void PlanWorld::set_up(Explorer& explorer) {
  Station::instance().set_up(explorer, ranks());
  for (int rank = 0; rank < ranks(); ++rank) {
    explorer.build_for(rank, [&] { make(rank); });
    name_memory(*made_[static_cast<std::size_t>(rank)], explorer.memory());
  }
}

void PlanWorld::make(int rank) {
  const auto index = static_cast<std::size_t>(rank);
  Station& station = Station::instance();
  made_[index] = new Rank(transport(rank));
  Rank& made = *made_[index];
  made.rank = rank;
  Placement placement;
  placement.transport = &transport(rank);
  for (int peer = 0; peer < ranks(); ++peer) placement.context_ranks.push_back(peer);
  placement.nodes = what_.nodes.empty() ? Nodes(what_.plans.size(), 0) : what_.nodes;
  made.rings = std::make_unique<TeamRings>(
      transport(rank), what_.rings,
      RingMembers{rank, placement.context_ranks,
                  std::vector<std::uint64_t>(what_.plans.size(), station.ground_offset()), places_of(rank)});
  made.rings->on(0).place_outbox(station.ground_offset() + made.rings->area().total_bytes());
  placement.rings = &made.rings->on(0);
  const auto add = [&](const PlanCase& what) {
    placement.collective = what.collective;
    const Plan& plan = what.plans[index];
    if (what_.rings.several_nodes()) {
      placement.distant_size = distant_size_of(plan, what.tuning.segment_bytes, Widening::none);
      give_entries(made, plan, placement.distant_size);
    }
    InstalledPlan& installed =
        *made.plans.emplace_back(std::make_unique<InstalledPlan>(install(plan, Widening::none, placement)));
    if (installed.uses.awaits_grants) (void)take_grants(installed, transport(rank).arena_bytes());
  };
  add(what_);
  for (const PlanCase& other : what_.others) add(other);
  for (std::size_t i = 0; i < what_.calls.size(); ++i) {
    const Call& call = what_.calls[i];
    made.programs.push_back(call.program ? compile_linear(*made.plans[static_cast<std::size_t>(call.plan)],
                                                          shapes_[i].layout, sizeof(std::int64_t), sizeof(std::int64_t))
                                         : nullptr);
    made.blocks.push_back(blocks_of(shapes_[i], ranks()));
  }
  // Always one way: which is faster here depends on the explorer.
  const bool past_caches = std::ranges::any_of(what_.calls, &Call::past_caches);
  for (const auto& plan : made.plans) {
    for (StoreChoices* stores : plan->stores) {
      stores->force(past_caches ? StoreChoice::Way::non_temporal : StoreChoice::Way::cached);
    }
  }
  std::byte* const ground = station.ground(rank);
  made.input = reinterpret_cast<std::int64_t*>(ground + kVectorsOffset);
  made.result = reinterpret_cast<std::int64_t*>(ground + kVectorsOffset + kVectorBytes);
  made.buffers.input = reinterpret_cast<std::uintptr_t>(made.input);
  made.buffers.result = reinterpret_cast<std::uintptr_t>(made.result);
  made.buffers.input_offset = static_cast<std::int64_t>(station.ground_offset() + kVectorsOffset);
  made.buffers.result_offset = made.buffers.input_offset + static_cast<std::int64_t>(kVectorBytes);
}

/// Members of the rank's node by their places there; none if the rings are those of one node.
std::vector<int> PlanWorld::places_of(int rank) const {
  std::vector<int> places;
  if (!what_.rings.several_nodes()) return places;
  const auto node = [&](int one) { return what_.nodes[static_cast<std::size_t>(one)]; };
  for (int peer = 0; peer < ranks(); ++peer) {
    int before = 0;
    for (int other = 0; other < peer; ++other) before += node(other) == node(peer) ? 1 : 0;
    places.push_back(node(peer) == node(rank) ? before : -1);
  }
  return places;
}

/// Both ends know where entries from other nodes are, by a formula, or it is told.
std::uint64_t PlanWorld::entries_offset(const RingArea& area, int sender, int ring) {
  const RingSizes& sizes = area.sizes();
  const std::size_t bytes = static_cast<std::size_t>(sizes.entries) * distant_entry_bytes(kSize);
  return Station::instance().ground_offset() + area.total_bytes() + sizes.outbox_bytes +
         static_cast<std::size_t>(sender * sizes.rings + ring) * bytes;
}

void PlanWorld::give_entries(Rank& made, const Plan& plan, int size) const {
  if (size != kSize) throw Error(Status::internal, "there is room for entries of one size alone");
  ChannelRings& rings = made.rings->on(0);
  const RingArea& area = made.rings->area();
  for (std::size_t i = 0; i < plan.in.size(); ++i) {
    const int ring = area.sizes().ring(flow_kind(size), ring_of(plan.in, i));
    if (rings.is_distant(plan.in[i].peer)) {
      rings.from(plan.in[i].peer, ring).given[kSize] = entries_offset(area, plan.in[i].peer, ring) + 1;
    }
  }
  for (std::size_t i = 0; i < plan.out.size(); ++i) {
    const int ring = area.sizes().ring(flow_kind(size), ring_of(plan.out, i));
    if (rings.is_distant(plan.out[i].peer) && !what_.tells) {
      rings.to(plan.out[i].peer, ring).granted[kSize] = entries_offset(area, made.rank, ring) + 1;
    }
  }
  const int ring = area.sizes().ring(RingKind::exchange, 0);
  for (int peer = 0; plan.exchange.exists() && peer < ranks(); ++peer) {
    if (!rings.is_distant(peer)) continue;
    rings.from(peer, ring).given[kSize] = entries_offset(area, peer, ring) + 1;
    if (!what_.tells) rings.to(peer, ring).granted[kSize] = entries_offset(area, made.rank, ring) + 1;
  }
}

/// As DistantEntries and PlanCache do: the calls begin when all receivers have told their places, and all that this
/// rank tells has left it.
void PlanWorld::tell_entries(Rank& own) const {
  InstalledPlan& plan = *own.plans.front();
  const auto tell = [&](const ReceiveRing& ring) {
    const ReceiveEnd& end = ring.end();
    const std::uint64_t line = end.grants_offset + kSize * kLineBytes;
    Put put;
    put.peer = end.peer;
    put.source = reinterpret_cast<const std::byte*>(&own.told.emplace_back(end.given[kSize] - 1));
    put.bytes = sizeof(std::uint64_t);
    put.signal_offset = line;
    put.target_offset = line + sizeof(std::uint64_t);
    put.signal = kToldSignal;
    put.owner = own.told_puts.count();
    (void)own.transport.put(put);
  };
  own.told.reserve(plan.in.size() + plan.exchange.peers.size());  // puts read there
  for (const InstalledIn& in : plan.in) tell(in.ring);
  for (const ExchangePeer& peer : plan.exchange.peers) {
    if (peer.takes) tell(peer.in.ring);
  }
  while (!take_grants(plan, own.transport.arena_bytes()) || !own.told_puts.drained()) {
    (void)own.transport.progress();
    platform().yield();
  }
}

void PlanWorld::name_memory(const Rank& made, Memory& memory) const {
  const std::byte* const ground = Station::instance().ground(made.rank);
  const std::string own = "rank " + std::to_string(made.rank) + "'s ";
  memory.name(made.input, kVectorBytes, own + "input");
  memory.name(made.result, kVectorBytes, own + "result");
  const RingArea& area = made.rings->area();
  const auto entries = static_cast<std::size_t>(area.sizes().entries);
  if (area.sizes().several_nodes()) name_distant_rings(made, memory);
  const int place = made.rings->members().place(made.rank);
  for (int peer = 0; peer < area.sizes().ranks; ++peer) {
    if (peer == place) continue;
    const std::string from = " from rank " + std::to_string(peer);
    for (int ring = 0; ring < area.sizes().rings; ++ring) {
      const std::string which = " of ring " + std::to_string(ring) + from;
      memory.name(ground + area.entries(EntryKind::line, 0, ring, place, peer), entries * kLineBytes,
                  own + "lines" + which);
      memory.name(ground + area.entries(EntryKind::cell, 0, ring, place, peer), entries * kCellBytes,
                  own + "cells" + which);
      memory.name(ground + area.entries(EntryKind::wide_cell, 0, ring, place, peer), entries * kWideCellBytes,
                  own + "wide cells" + which);
    }
    memory.name(ground + area.count(0, 0, place, peer), kLineBytes,
                own + "counts of rings to rank " + std::to_string(peer));
    memory.name(ground + area.offers(0, place, peer), kPairOfferLines * kLineBytes, own + "offer lines" + from);
  }
  memory.name(made.rings->on(0).outbox_memory(), area.sizes().outbox_bytes, own + "outbox");
}

void PlanWorld::name_distant_rings(const Rank& made, Memory& memory) const {
  const std::byte* const ground = Station::instance().ground(made.rank);
  const std::string own = "rank " + std::to_string(made.rank) + "'s ";
  const RingArea& area = made.rings->area();
  const auto entries = static_cast<std::size_t>(area.sizes().entries);
  for (int peer = 0; peer < ranks(); ++peer) {
    for (int ring = 0; ring < area.sizes().rings; ++ring) {
      const std::string which = " of ring " + std::to_string(ring);
      const std::size_t at = entries_offset(area, peer, ring) - Station::instance().ground_offset();
      memory.name(ground + at, entries * distant_entry_bytes(kSize),
                  own + "entries" + which + " from rank " + std::to_string(peer));
      memory.name(ground + area.credits(0, ring, peer), entries * sizeof(std::uint64_t),
                  own + "credits" + which + " to rank " + std::to_string(peer));
      memory.name(ground + area.grant(0, ring, peer, 0), kDistantSizes * kLineBytes,
                  own + "grants" + which + " to rank " + std::to_string(peer));
    }
  }
}

void PlanWorld::run(int rank) {
  Rank& own = *made_[static_cast<std::size_t>(rank)];
  if (what_.tells) tell_entries(own);
  for (std::size_t i = 0; i < what_.calls.size(); ++i) {
    const Call& call = what_.calls[i];
    fill(own, i);
    own.buffers.input_reachable = own.buffers.result_reachable = call.in_place;
    // A salt that differs stands for every difference between calls: all are in the signature.
    own.buffers.salt = what_.last_calls_differ && rank == 1 && i + 1 == what_.calls.size() ? 2 : 0;
    own.buffers.blocks = call.unequal ? &own.blocks[i] : nullptr;
    own.execution.begin(*own.plans[static_cast<std::size_t>(call.plan)], shapes_[i], own.buffers,
                        own.programs[i].get());
    wait(own, call);
    check(own, i);
  }
}

void PlanWorld::wait(Rank& own, const Call& call) const {
  SleepMark mark;
  while (true) {
    const Progress progress = own.execution.advance();
    if (own.execution.status() != Status::ok) explorer().fail("rank " + std::to_string(own.rank) + "'s call fails");
    if (progress == Progress::done) return;
    if (progress == Progress::moved) {
      mark.clear();
      continue;
    }
    if (!call.sleeps) {
      platform().yield();
      continue;
    }
    // As a waiting rank does (waiting.cpp): it looks once more after peers can see that it sleeps, which they do until
    // something moves.
    Progress last = Progress::idle;
    struct Look {
      Execution& execution;
      Progress& last;
    } look{own.execution, last};
    explorer().forget_looks();
    own.transport.sleep(
        mark, 1000,
        [](void* data) {
          auto& at = *static_cast<Look*>(data);
          at.last = at.execution.advance();
          return at.last == Progress::idle;
        },
        &look);
    if (last == Progress::done) return;
    if (last == Progress::moved) mark.clear();
  }
}

void PlanWorld::fill(const Rank& own, std::size_t call) const {
  for (std::size_t i = 0; i < what_.calls[call].count; ++i) own.input[i] = value_of(own.rank, call, i);
}

std::int64_t PlanWorld::expected(int rank, std::size_t call, std::size_t element) const {
  const PlanCase& what = case_of(what_.calls[call]);
  const std::size_t block = what_.calls[call].count / what_.plans.size();
  switch (what.collective) {
    case Collective::broadcast:
      return value_of(what.root, call, element);
    case Collective::alltoall:
      return value_of(static_cast<int>(element / block), call,
                      static_cast<std::size_t>(rank) * block + element % block);
    case Collective::scatter:
      return value_of(what.root, call, element);
    default:
      break;
  }
  std::int64_t sum = 0;
  for (int one = 0; one < ranks(); ++one) sum += value_of(one, call, element);
  return sum;
}

void PlanWorld::check(const Rank& own, std::size_t call) const {
  const PlanCase& what = case_of(what_.calls[call]);
  if (what.collective == Collective::broadcast && own.rank == what.root) return;
  if (what.collective == Collective::reduce && own.rank != what.root) return;
  const bool has_block = what.collective == Collective::scatter;
  const std::size_t block = what_.calls[call].count / what_.plans.size();
  const std::size_t first = has_block ? static_cast<std::size_t>(own.rank) * block : 0;
  const std::size_t end = has_block ? first + block : what_.calls[call].count;
  for (std::size_t i = first; i < end; ++i) {
    const std::int64_t is = own.result[i];
    if (is == expected(own.rank, call, i)) continue;
    explorer().fail("rank " + std::to_string(own.rank) + ", call " + std::to_string(call) + ": element " +
                    std::to_string(i) + " of the result is " + std::to_string(is) + " and not " +
                    std::to_string(expected(own.rank, call, i)) + ": a message was lost, doubled or overwritten");
  }
}

}  // namespace torii::exploration
