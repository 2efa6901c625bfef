// SPDX-License-Identifier: Apache-2.0
// One thread per rank: arena, shared-memory transport, faults, executor.
#include "tests/conformance/plan_team.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "collectives/proof/verify.hpp"
#include "runtime/execution/execution.hpp"
#include "runtime/fabric/waiting.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/conformance/distant.hpp"
#include "tests/support/thread_ranks.hpp"
#include "tools/operands.hpp"
#include "transports/shared_memory/shared_memory.hpp"

namespace torii::tests {
namespace {

constexpr int kEngines = 4;

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
    Placement placement;
    placement.transport = &faulty_;
    placement.collective = run.collective;
    for (int peer = 0; peer < bootstrap.ranks(); ++peer) placement.context_ranks.push_back(peer);
    placement.plan_of = [&run](int peer) { return run.plans[static_cast<std::size_t>(peer)]; };
    if (run.rings) {
      const std::uint64_t own = arena_->allocate(RingArea(*run.rings).total_bytes());
      rings_ = std::make_unique<TeamRings>(
          faulty_, *run.rings, RingMembers{bootstrap.rank(), placement.context_ranks, gather_values(bootstrap, own)});
      rings_->on(0).place_outbox(arena_->allocate(run.rings->outbox_bytes));
      placement.rings = &rings_->on(0);
      placement.slots_least = run.slots_least;
    } else {
      const StagingShape shape =
          staging_shape(run.plans[rank], run.tuning.segment_bytes, widening_of_run(run), !run.nodes.empty());
      placement.staging_offsets = gather_values(bootstrap, arena_->allocate(shape.total_bytes));
    }
    plan_ = install(run.plans[rank], run.tuning.segment_bytes, widening_of_run(run), placement);
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
    if (run.allocated && !run.forged_offset && !run.rings) distant_.end_arena_at(static_cast<std::uint64_t>(end));
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

  /// Nobody unmaps what another thread may still put into.
  void leave() {
    // What a slow engine holds arrives; what a cut one holds does not.
    while (run_.faults.engine_us > 0 && !faulty_.is_idle()) (void)faulty_.progress();
    distant_.flush();
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

  void place_buffers() {
    if (run_.allocated) {
      buffers_.input_offset = static_cast<std::int64_t>(arena_->allocate(bytes_));
      buffers_.result_offset = static_cast<std::int64_t>(arena_->allocate(bytes_));
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
        own.leave();
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
