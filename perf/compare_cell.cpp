// SPDX-License-Identifier: Apache-2.0
// Alternates the four ways block by block, so that a machine that changes its speed in mid-run changes it for all.
#include "perf/compare_cell.hpp"

#include <array>
#include <vector>

#include "perf/common/buffers.hpp"
#include "perf/common/failure.hpp"
#include "perf/common/names.hpp"
#include "perf/common/sums.hpp"
#include "perf/mpi_calls.hpp"

namespace torii::perf {
namespace {

constexpr int kWarmUpCalls = 3;

class ComparedCall : public Subject {
 public:
  explicit ComparedCall(CallData& data) : data_(data) {}
  void prepare(int i) override { data_.refresh(i); }
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
  // A rank may leave MPI's call while packets for others wait in it, which move in calls of MPI only (seen: MPI_Bcast
  // of Open MPI over tcp). They would wait for ever while it waits for them elsewhere.
  void settle() override { Mpi::barrier(); }
};

/// One call with pattern 0 into a spoilt result, checked.
int64_t check_once(const Job& job, ComparedCall& way, bool is_mpi, uint64_t seed) {
  CallData& data = way.data();
  if (data.elements() == 0) return 0;
  data.refresh(0);
  data.spoil_result();
  job.barrier();
  check(way.call(), "the checked call failed");
  way.settle();
  const bool sums = is_mpi && combines(data.call().collective);
  const auto wrong = sums ? count_wrong_sums(job, data, seed) : static_cast<int64_t>(data.count_wrong(job.team(), 0));
  return job.sum(wrong);
}

}  // namespace

CellResult compare_cell(Job& job, Meeting& meeting, const CellRequest& request) {
  Options options;
  options.collective = request.collective;
  CallData malloced(job, options, Memory::malloced, request.bytes, TORII_F32, TORII_SUM);
  CallData allocated(job, options, Memory::allocated, request.bytes, TORII_F32, TORII_SUM);
  CallData adopted(job, options, Memory::adopted, request.bytes, TORII_F32, TORII_SUM);
  MpiCall mpi(malloced);
  ToriiCall torii_malloc(malloced, job.team());
  ToriiCall torii_allocated(allocated, job.team());
  ToriiCall torii_adopted(adopted, job.team());
  const std::array<ComparedCall*, 4> ways = {&mpi, &torii_malloc, &torii_allocated, &torii_adopted};

  CellResult result;
  result.bytes = malloced.bytes();
  torii_choice choice{};
  choice.size = sizeof(choice);
  check(torii_choose(job.team(), &malloced.call(), &choice), "torii does not run this");
  result.algorithm = choice.algorithm;
  result.segment_bytes = choice.segment_bytes;
  result.engines = choice.engines;
  result.wrong_mpi = check_once(job, mpi, true, options.seed);
  for (ComparedCall* const way : {ways[1], ways[2], ways[3]}) {
    result.wrong_torii += check_once(job, *way, false, options.seed);
  }

  std::array<int, 4> calls{};
  for (size_t w = 0; w < ways.size(); ++w) {
    calls[w] = warm_up(job, meeting, request.timing, kWarmUpCalls, request.block_ns, *ways[w]);
  }
  std::array<std::vector<std::vector<double>>, 4> blocks;
  for (size_t b = 0; b < kBlocks; ++b) {
    for (size_t i = 0; i < ways.size(); ++i) {
      const size_t w = (b + i) % ways.size();
      blocks[w].push_back(run_block(job, meeting, request.timing, calls[w], *ways[w]).durations_ns);
    }
  }
  result.mpi = summarise(blocks[0]);
  result.torii_malloc = summarise(blocks[1]);
  result.torii_allocated = summarise(blocks[2]);
  result.torii_adopted = summarise(blocks[3]);
  return result;
}

}  // namespace torii::perf
