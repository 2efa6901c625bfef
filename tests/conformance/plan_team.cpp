// SPDX-License-Identifier: Apache-2.0
// One thread per rank: arena, shared-memory transport, faults, standing rings, executor.
#include "tests/conformance/plan_team.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <ranges>

#include "collectives/proof/verify.hpp"
#include "runtime/execution/execution.hpp"
#include "runtime/fabric/waiting.hpp"
#include "runtime/fabric/words.hpp"
#include "runtime/plan/crediting.hpp"
#include "runtime/plan/ring_rules.hpp"
#include "tests/conformance/distant.hpp"
#include "tests/support/thread_ranks.hpp"
#include "tools/operands.hpp"
#include "transports/shared_memory/shared_memory.hpp"

namespace torii::tests {
namespace {

constexpr int kEngines = 4;
/// Allocations of so many bytes and more have their alignment, and leave no gaps between each other.
constexpr std::size_t kWholeBytes = std::size_t{64} << 10;

CallShape call_shape(const PlanRun& run) {
  const Plan& plan = run.plans[0];
  CallShape call;
  call.type = run.type;
  call.element_bytes = call.unit_bytes = size_of(run.type);
  const std::size_t total_bytes = run.count * call.element_bytes;
  const auto blocks = static_cast<std::size_t>(plan.blocks);
  if (plan.exchange.exists()) {
    call.block_bytes = total_bytes / blocks;
    call.layout = Layout(plan.dealing, total_bytes, plan.blocks, run.tuning.segment_bytes, call.block_bytes);
    return call;
  }
  const std::size_t even_bytes =
      is_personalised(run.collective) ? total_bytes / blocks : round_up((total_bytes + blocks - 1) / blocks, 128);
  call.layout = Layout(plan.dealing, total_bytes, plan.blocks, run.tuning.segment_bytes, even_bytes);
  // The reference kernels are plain loops, so a race checker sees each of their accesses.
  call.fold = kernels::find(run.op, run.type, kernels::Isa::reference);
  return call;
}

Widening widening_of_run(const PlanRun& run) { return run.wide ? widening_of(run.type) : Widening::none; }

bool has_several_nodes(const PlanRun& run) {
  return std::ranges::any_of(run.nodes, [&](int node) { return node != run.nodes.front(); });
}

/// The standing rings that a team of the run's ranks has, for one channel.
RingSizes sizes_of(const PlanRun& run) {
  if (run.rings) return *run.rings;
  const int ranks = static_cast<int>(run.plans.size());
  if (!has_several_nodes(run)) return ring_sizes(ranks, 1);
  std::map<int, int> on_nodes;  // so many ranks
  for (const int node : run.nodes) ++on_nodes[node];
  return distant_ring_sizes(std::ranges::max(on_nodes | std::views::values), ranks, 1,
                            run.plans[0].slots >= kSharedSlotsLeast);
}

/// The longest messages of all calls that share the run's plan in a team with such rings.
std::size_t message_bytes_of(const PlanRun& run, const RingSizes& sizes) {
  const std::size_t segment_bytes = run.tuning.segment_bytes;
  if (!sizes.several_nodes()) return segment_bytes;
  const std::size_t longest_bytes = std::min(segment_bytes, call_shape(run).layout.longest_bytes());
  return std::min(segment_bytes, distant_payload_bytes(distant_size(longest_bytes)));
}

/// A team would change the plan until it fits. Here it stays as the test has it.
void check_that_it_fits(const PlanRun& run, const RingSizes& sizes) {
  RingNeeds needs = {run.slots_least, 1};
  for (const Plan& plan : run.plans) needs.pair_streams = std::max(needs.pair_streams, rings_of(plan));
  if (binds_to_rings(run.plans[0], needs, message_bytes_of(run, sizes), widening_of_run(run), sizes)) return;
  throw Error(Status::internal, "the plan does not fit into the standing rings");
}

/// One rank's part. Every rank makes its own, on its own thread.
class PlanRank {
 public:
  PlanRank(const PlanRun& run, Bootstrap& bootstrap)
      : run_(run),
        bootstrap_(bootstrap),
        nodes_(bootstrap),
        arena_(shared_memory::make_arena(bootstrap, nodes_, shared_memory::kArenaBytesMin)),
        peers_(bootstrap, nodes_, *arena_, run.deadline_s),
        shared_memory_(bootstrap, *arena_, peers_, kEngines, run.cross_memory ? Switch::on : Switch::off),
        distant_(shared_memory_, run.nodes, faults().seed, run.gathers),
        faulty_(distant_, faults()),
        execution_(faulty_) {
    const auto rank = static_cast<std::size_t>(bootstrap.rank());
    if (run.arena_ends_at) distant_.end_arena_at(*run.arena_ends_at);
    if (run.relaxed_signals) distant_.relax_signals();
    Placement placement;
    placement.transport = &faulty_;
    placement.collective = run.collective;
    for (int peer = 0; peer < bootstrap.ranks(); ++peer) placement.context_ranks.push_back(peer);
    make_rings(run.plans[rank], placement);
    plan_ = install(run.plans[rank], widening_of_run(run), placement);
    if (plan_.remote && !take_grants(plan_, arena_->bytes())) {
      throw Error(Status::internal, "a receiver has told no place of entries");
    }
    if (run.ignores_counts) {
      for (const InstalledOut& out : plan_.out) out.ring.end().known = std::uint64_t{1} << 62;
    }
    shape_ = call_shape(run);
    if (run.program) program_ = compile_linear(plan_, shape_.layout, shape_.unit_bytes, shape_.element_bytes);
    if (plan_.private_reads.choice != nullptr) plan_.private_reads.choice->force(run.cross_memory ? 1 : 0);
    if (run.stores) {
      for (StoreChoices* stores : plan_.stores) stores->force(*run.stores);
    }
    bytes_ = run.count * size_of(run.type);
    place_buffers();
    // Nothing but the vectors may be reached in place, to their last byte.
    std::int64_t end = 0;
    for (const std::int64_t offset :
         gather_values(bootstrap, std::max(buffers_.input_offset, buffers_.result_offset))) {
      end = std::max(end, offset + static_cast<std::int64_t>(bytes_));
    }
    if (run.allocated && !run.forged_offset && !run.arena_ends_at)
      distant_.end_arena_at(static_cast<std::uint64_t>(end));
  }

  Status run(const FillOperand& fill, std::vector<std::vector<std::byte>>& results) {
    for (int call = 0; call < run_.calls; ++call) {
      fill(bootstrap_.rank(), call, input_);
      execution_.begin(plan_, shape_, buffers_, program_.get());
      const std::int64_t begun_ns = now_ns();
      Execution::Progress progress = Execution::Progress::idle;
      while ((progress = execution_.advance()) != Execution::Progress::done) {
        if (execution_.status() != Status::ok) return execution_.status();
        if (progress == Execution::Progress::moved) continue;
        sched_yield();
        if (static_cast<double>(now_ns() - begun_ns) > run_.deadline_s * 1e9) return Status::timeout;
      }
      results.emplace_back(result_, result_ + bytes_);
    }
    return Status::ok;
  }

  /// Nobody unmaps what another thread may still put into. Nor does anybody take a lock before all have `ended` their
  /// calls: it would order what the calls leave without order on purpose. That counter orders nothing.
  void leave(std::atomic<int>& ended) {
    // What a slow engine holds arrives; what a cut one holds does not.
    while (run_.faults.engine_us > 0 && !faulty_.is_idle()) (void)faulty_.progress();
    distant_.flush();
    ended.fetch_add(1, std::memory_order_relaxed);
    while (ended.load(std::memory_order_relaxed) != bootstrap_.ranks()) sched_yield();
    gather_values(bootstrap_, 0);
  }
  std::uint64_t distant_puts() const { return distant_.distant_puts(); }
  int targets_most() const { return distant_.targets_most(); }
  std::string refusal() const { return execution_.refusal(); }
  std::uint64_t reads() const { return distant_.reads(); }
  std::uint32_t turns() const { return plan_.private_reads.turns->next(bytes_); }
  std::uint64_t puts_from_vectors() const { return distant_.watched_puts(); }
  std::uint64_t delays() const { return faulty_.delays(); }
  std::uint64_t engine_bytes(int engine) const { return execution_.engine_bytes(engine); }

 private:
  faulty::Faults faults() const {
    faulty::Faults own = run_.faults;
    own.seed = own.seed * 1000 + static_cast<std::uint64_t>(bootstrap_.rank());
    return own;
  }

  /// Peers do not touch all of it, so pages are taken when they are touched.
  std::uint64_t take_whole(std::size_t bytes) {
    return arena_->allocate(round_up(std::max<std::size_t>(bytes, 1), kWholeBytes), shared_memory::Backing::on_touch);
  }

  void make_rings(const Plan& plan, Placement& placement) {
    const RingSizes sizes = sizes_of(run_);
    check_that_it_fits(run_, sizes);
    const std::uint64_t own = take_whole(RingArea(sizes).total_bytes());
    rings_ = std::make_unique<TeamRings>(
        faulty_, sizes,
        RingMembers{bootstrap_.rank(), placement.context_ranks, gather_values(bootstrap_, own), places(sizes)});
    ChannelRings& rings = rings_->on(0);
    rings.place_outbox(take_whole(sizes.outbox_bytes));
    placement.rings = &rings;
    placement.slots_least = run_.slots_least;
    if (!sizes.several_nodes()) return;
    placement.distant_size = distant_size_of(plan, message_bytes_of(run_, sizes), widening_of_run(run_));
    give_entries(plan, rings, placement.distant_size);
  }

  /// For each rank its number among those of this node, or -1; nothing if all are on one node.
  std::vector<int> places(const RingSizes& sizes) const {
    std::vector<int> places;
    int before = 0;
    for (const int node : sizes.several_nodes() ? run_.nodes : std::vector<int>{}) {
      places.push_back(node == run_.nodes[static_cast<std::size_t>(bootstrap_.rank())] ? before++ : -1);
    }
    return places;
  }

  /// Takes the entries of the rings from other nodes, and tells their senders where these are. All do so before any
  /// goes on. The lines arrive at once: they are no part of a call, whose puts may be late, lost or counted.
  void give_entries(const Plan& plan, ChannelRings& rings, int size) {
    const auto number = static_cast<std::size_t>(size);
    const RingSizes& sizes = rings.sizes();
    const RingKind kind = ring_kind(plan, size);
    const std::size_t bytes = static_cast<std::size_t>(sizes.of(kind).entries) * distant_entry_bytes(size);
    const auto give = [&](int sender, int stream) {
      if (sender == plan.rank || !rings.is_distant(sender)) return;
      ReceiveEnd& end = rings.from(sender, sizes.ring(kind, stream));
      const std::uint64_t offset = take_whole(bytes);
      end.given[number] = offset + 1;
      std::byte* const line = shared_memory_.mapped(sender, end.grants_offset + number * kLineBytes);
      std::memcpy(line + sizeof(std::uint64_t), &offset, sizeof(offset));
      store_word(line, kToldSignal);
    };
    for (std::size_t i = 0; i < plan.in.size(); ++i) give(plan.in[i].peer, ring_of(plan.in, i));
    const PairwiseExchange& exchange = plan.exchange;
    for (int peer = 0; exchange.exists() && peer < plan.ranks; ++peer) {
      if (exchange.takes(plan.rank) && exchange.sends(peer)) give(peer, 0);
    }
    gather_values(bootstrap_, 0);
  }

  void place_buffers() {
    if (run_.allocated) {
      // Behind all that peers reach otherwise, so that the arena may end with them.
      buffers_.input_offset = static_cast<std::int64_t>(take_whole(bytes_));
      buffers_.result_offset = static_cast<std::int64_t>(take_whole(bytes_));
      EXPECT_EQ(arena_->used_offsets().back(), static_cast<std::size_t>(buffers_.result_offset));
      buffers_.input_reachable = buffers_.result_reachable = true;
      input_ = arena_->base() + buffers_.input_offset;
      result_ = arena_->base() + buffers_.result_offset;
    } else {
      memory_.resize(2 * bytes_);
      input_ = memory_.data();
      result_ = memory_.data() + bytes_;
    }
    if (run_.in_place) {
      input_ = result_;
      buffers_.input_offset = buffers_.result_offset;
    }
    if (run_.forged_offset && bootstrap_.rank() == 0) {
      buffers_.input_offset = buffers_.result_offset = *run_.forged_offset;
    }
    distant_.watch(input_, bytes_);
    if (!run_.in_place) distant_.watch(result_, bytes_);
    buffers_.input = reinterpret_cast<std::uintptr_t>(input_);
    buffers_.result = reinterpret_cast<std::uintptr_t>(result_);
  }

  const PlanRun& run_;
  Bootstrap& bootstrap_;
  shared_memory::Nodes nodes_;
  std::unique_ptr<shared_memory::Arena> arena_;
  shared_memory::NodePeers peers_;
  shared_memory::SharedMemory shared_memory_;
  Distant distant_;
  faulty::Faulty faulty_;
  Execution execution_;
  std::unique_ptr<TeamRings> rings_;
  InstalledPlan plan_;
  CallShape shape_;
  CallBuffers buffers_;
  std::unique_ptr<LinearProgram> program_;
  std::size_t bytes_ = 0;
  std::vector<std::byte> memory_;
  std::byte* input_ = nullptr;
  std::byte* result_ = nullptr;
};

}  // namespace

bool PlanOutcome::ok() const {
  return std::all_of(status.begin(), status.end(), [](Status one) { return one == Status::ok; });
}

bool PlanOutcome::has_results_of(const PlanOutcome& other) const {
  bool same = results.size() == other.results.size();
  for (std::size_t rank = 0; same && rank < results.size(); ++rank) same = has_results_of(other, rank);
  return same;
}

bool PlanOutcome::has_results_of(const PlanOutcome& other, std::size_t rank) const {
  return std::ranges::equal(results[rank], other.results[rank],
                            [](const auto& left, const auto& right) { return same_bytes(left, right); });
}

PlanOutcome run_plans(const PlanRun& run, const FillOperand& fill) {
  PlanOutcome outcome;
  const std::size_t ranks = run.plans.size();
  outcome.results.resize(ranks);
  outcome.status.assign(ranks, Status::internal);
  outcome.refusals.resize(ranks);
  outcome.turns.resize(ranks);
  std::atomic<int> ended = 0;
  std::atomic<std::uint64_t> delays = 0;
  std::atomic<std::uint64_t> distant_puts = 0;
  std::atomic<std::uint64_t> reads = 0;
  std::atomic<std::uint64_t> puts_from_vectors = 0;
  std::array<std::atomic<std::uint64_t>, kEngines> engine_bytes{};
  std::vector<int> targets_most(ranks, 0);
  tests::run_ranks_as_threads(
      static_cast<int>(ranks),
      [&](Bootstrap& bootstrap) {
        const auto rank = static_cast<std::size_t>(bootstrap.rank());
        PlanRank own(run, bootstrap);
        outcome.status[rank] = own.run(fill, outcome.results[rank]);
        outcome.refusals[rank] = own.refusal();
        outcome.turns[rank] = own.turns();
        delays += own.delays();
        own.leave(ended);
        distant_puts += own.distant_puts();
        reads += own.reads();
        puts_from_vectors += own.puts_from_vectors();
        for (std::size_t i = 0; i < engine_bytes.size(); ++i) engine_bytes[i] += own.engine_bytes(static_cast<int>(i));
        targets_most[rank] = own.targets_most();
      },
      run.deadline_s * (run.calls + 1));
  outcome.delays = delays;
  outcome.distant_puts = distant_puts;
  outcome.reads = reads;
  outcome.puts_from_vectors = puts_from_vectors;
  outcome.engine_bytes.assign(engine_bytes.begin(), engine_bytes.end());
  outcome.targets_most = *std::max_element(targets_most.begin(), targets_most.end());
  return outcome;
}

FillOperand filler(const PlanRun& run) {
  return [&run](int rank, int call, std::byte* out) {
    fill_operand(run.type, static_cast<std::uint64_t>(call), rank, 0, run.count, out);
  };
}

PlanRun make_run(std::string_view algorithm, const PlanRequest& request, std::size_t count) {
  const Algorithm& row = *find_algorithm(algorithm);
  EXPECT_EQ(row.why_not(request), "") << algorithm;
  PlanRun run;
  run.plans = plan_all(row, request);
  run.collective = request.collective;
  run.tuning = request.tuning;
  run.wide = request.wide_wire;
  run.slots_least = slots_least(row, request);
  run.count = count;
  return run;
}

}  // namespace torii::tests
