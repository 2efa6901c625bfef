// SPDX-License-Identifier: Apache-2.0
// The same calls in a row as busy_perf's, of an MPI: perf/busy starts it by mpirun. torii joins through MPI_Allgather,
// only to bring the figures of the ranks together.
#include <cstdio>

#include "perf/busy_calls.hpp"
#include "perf/common/failure.hpp"
#include "perf/mpi_calls.hpp"

namespace torii::perf {
namespace {

class MpiAllreduce final : public BusyCall {
 public:
  int64_t run(int64_t mine) override {
    int64_t sum = 0;
    torii_call call{};
    call.size = sizeof(call);
    call.collective = TORII_ALLREDUCE;
    call.input = &mine;
    call.result = &sum;
    call.count = 1;
    call.type = TORII_I64;
    call.op = TORII_SUM;
    check(Mpi::run(call), "an allreduce failed");
    return sum;
  }
};

/// From rank 0 to rank 1 and back.
class MpiSend final : public BusyCall {
 public:
  explicit MpiSend(const Mpi& mpi) : rank_(mpi.rank()) {
    if (mpi.ranks() != 2) throw Failure(kBadCommandLine, "--kind send needs 2 ranks");
  }
  int64_t run(int64_t mine) override {
    if (rank_ == 0) Mpi::module().send(&mine, sizeof(mine), 1);
    Mpi::module().receive(&mine, sizeof(mine), 1 - rank_);
    if (rank_ == 1) Mpi::module().send(&mine, sizeof(mine), 0);
    return mine;
  }

 private:
  int rank_;
};

int run_busy(int argc, char** argv, const Mpi& mpi) {
  BusyOptions options;
  const CommandLine app("Times calls of 8 bytes of an MPI in a row, and says where the ranks were in the slow ones.");
  add_busy_flags(app, options, {"allreduce", "send"});
  const std::string version = torii_version() + (", " + Mpi::version());
  const char* const example = "mpirun.openmpi -n 2 busy_perf.openmpi --seconds 5";
  if (!parse_command_line(app, argc, argv, example, version, mpi.rank() == 0)) return kOk;
  bind_rank(options, mpi.rank(), mpi.ranks());
  const Job job("", Mpi::exchange, mpi.rank(), mpi.ranks());
  MpiAllreduce allreduce;
  if (options.kind == "allreduce") {
    measure_busy(job, options, allreduce);
    return kOk;
  }
  MpiSend send(mpi);
  measure_busy(job, options, send);
  return kOk;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  using namespace torii::perf;
  const Mpi mpi(argc, argv);
  try {
    return run_busy(argc, argv, mpi);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", mpi.rank(), error.what());
    Mpi::abort(exit_code_of(error));
  }
}
