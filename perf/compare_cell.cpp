// SPDX-License-Identifier: Apache-2.0
// Alternates the ways block by block, so that a machine that changes its speed in mid-run changes it for all.
#include "perf/compare_cell.hpp"

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "perf/common/buffers.hpp"
#include "perf/common/failure.hpp"
#include "perf/common/names.hpp"
#include "perf/common/sums.hpp"
#include "perf/limits/loops.hpp"
#include "perf/limits/movement.hpp"
#include "perf/mpi_calls.hpp"

namespace torii::perf {
namespace {

constexpr int kWarmUpCalls = 3;

class ComparedCall : public Subject {
 public:
  explicit ComparedCall(CallData& data) : data_(data) {}
  void prepare(int i) override { data_.refresh(i); }
  // A rank may leave MPI's call while packets for others wait in it, which move in calls of MPI only (seen: MPI_Bcast
  // of Open MPI over tcp). They would wait for ever while it waits for them elsewhere. All ways settle in the same
  // way, since it decides in which order ranks that share a CPU come to the next call.
  void settle() override { Mpi::barrier(); }
  CallData& data() const { return data_; }

 private:
  CallData& data_;
};
class ToriiCall : public ComparedCall {
 public:
  ToriiCall(CallData& data, torii_team* team) : ComparedCall(data), team_(team) {}
  torii_status call() override { return torii_run(team_, &data().call()); }

 private:
  torii_team* team_;
};
class MpiCall : public ComparedCall {
 public:
  using ComparedCall::ComparedCall;
  torii_status call() override { return Mpi::run(data().call()); }
};

/// The fastest of some hand-written loops.
class LimitCall : public ComparedCall {
 public:
  using ComparedCall::ComparedCall;
  torii_status call() override {
    loop_->run();
    return TORII_OK;
  }
  void take(std::unique_ptr<Loop> loop) { loop_ = std::move(loop); }
  std::unique_ptr<Loop> give() { return std::move(loop_); }
  const char* name() const { return loop_->name(); }

 private:
  std::unique_ptr<Loop> loop_;
};

/// One call with pattern 0 into a spoilt result, checked.
int64_t check_once(const Job& job, ComparedCall& way, bool any_order, uint64_t seed) {
  CallData& data = way.data();
  if (data.elements() == 0) return 0;
  data.refresh(0);
  data.spoil_result();
  job.barrier();
  check(way.call(), "the checked call failed");
  way.settle();
  const bool sums = any_order && combines(data.call().collective);
  const auto wrong = sums ? count_wrong_sums(job, data, seed) : static_cast<int64_t>(data.count_wrong(job.team(), 0));
  return job.sum(wrong);
}

/// Collective. Checks all loops, times each for half a block, and leaves the fastest one in `call`. Returns the number
/// of wrong elements.
int64_t choose(const Job& job, Meeting& meeting, const CellRequest& request, uint64_t seed, Loops loops,
               LimitCall& call) {
  double best_ns = std::numeric_limits<double>::infinity();
  int64_t wrong = 0;
  std::unique_ptr<Loop> best;
  for (std::unique_ptr<Loop>& loop : loops) {
    call.take(std::move(loop));
    wrong += check_once(job, call, true, seed);
    const int calls = warm_up(job, meeting, request.timing, kWarmUpCalls, request.block_ns / 2, call);
    // Durations are equal on all ranks, and so is the choice.
    const double time_ns = median(run_block(job, meeting, request.timing, calls, call).durations_ns);
    if (time_ns >= best_ns) continue;
    best_ns = time_ns;
    best = call.give();
  }
  call.take(std::move(best));
  return wrong;
}

struct TimedWay {
  ComparedCall* call;
  Statistics* time;
};

/// Block by block in turn, each time beginning with another one.
void alternate(const Job& job, Meeting& meeting, const CellRequest& request, const std::vector<TimedWay>& ways) {
  std::vector<int> calls;
  for (const TimedWay& way : ways)
    calls.push_back(warm_up(job, meeting, request.timing, kWarmUpCalls, request.block_ns, *way.call));
  std::vector<std::vector<std::vector<double>>> blocks(ways.size());
  for (size_t b = 0; b < kBlocks; ++b) {
    for (size_t i = 0; i < ways.size(); ++i) {
      const size_t w = (b + i) % ways.size();
      blocks[w].push_back(run_block(job, meeting, request.timing, calls[w], *ways[w].call).durations_ns);
    }
  }
  for (size_t w = 0; w < ways.size(); ++w) *ways[w].time = summarise(blocks[w]);
}

}  // namespace

LimitMeans::LimitMeans(const Job& job) : area(job) {
  if (torii_context_nodes(job.context()) > 1) sockets.emplace(job);
}

CellResult compare_cell(Job& job, Meeting& meeting, LimitMeans& means, const CellRequest& request) {
  Options options;
  options.collective = request.collective;
  CallData malloced(job, options, Memory::malloced, request.bytes, TORII_F32, TORII_SUM);
  CallData allocated(job, options, Memory::allocated, request.bytes, TORII_F32, TORII_SUM);
  CallData adopted(job, options, Memory::adopted, request.bytes, TORII_F32, TORII_SUM);
  const bool maps = means.area.is_there() && !means.sockets;
  CallData shared(job, options, maps ? Memory::shared : Memory::malloced, request.bytes, TORII_F32, TORII_SUM);
  MpiCall mpi(malloced);
  ToriiCall torii_malloc(malloced, job.team());
  ToriiCall torii_allocated(allocated, job.team());
  ToriiCall torii_adopted(adopted, job.team());
  LimitCall limit_private(malloced), limit_mapped(shared);

  CellResult result;
  result.bytes = malloced.bytes();
  torii_choice choice{};
  choice.size = sizeof(choice);
  check(torii_choose(job.team(), &malloced.call(), &choice), "torii does not run this");
  result.algorithm = choice.algorithm;
  result.segment_bytes = choice.segment_bytes;
  result.engines = choice.engines;
  result.wrong_mpi = check_once(job, mpi, true, options.seed);
  for (ToriiCall* const way : {&torii_malloc, &torii_allocated, &torii_adopted})
    result.wrong_torii += check_once(job, *way, false, options.seed);
  std::vector<TimedWay> ways = {{&mpi, &result.mpi},
                                {&torii_malloc, &result.torii_malloc},
                                {&torii_allocated, &result.torii_allocated},
                                {&torii_adopted, &result.torii_adopted}};
  const auto add_limit = [&](Loops loops, LimitCall& call, Limit& limit) {
    result.wrong_limits += choose(job, meeting, request, options.seed, std::move(loops), call);
    limit.name = call.name();
    ways.push_back({&call, &limit.time});
  };
  const auto movement = movement_of(malloced.call(), job.ranks(), sizeof(float));
  if (movement && means.sockets) {
    add_limit(network_loops(means.area, *means.sockets, malloced, *movement), limit_private, result.limit_private);
  } else if (movement && maps) {
    add_limit(private_loops(means.area, malloced, *movement), limit_private, result.limit_private);
    add_limit(mapped_loops(means.area, shared, *movement), limit_mapped, result.limit_mapped);
  }
  alternate(job, meeting, request, ways);
  return result;
}

}  // namespace torii::perf
