// SPDX-License-Identifier: Apache-2.0
// Takes the time that an MPI program spends in blocking collectives, for perf/programs. Preloaded into each rank:
//   mpirun.openmpi -n 4 -x LD_PRELOAD=torii_call_times_openmpi.so -x TORII_CALL_TIMES=times program
// Each rank writes the number of its calls and their seconds to times.RANK. A program runs once more for that, since
// two looks at the clock would change the time of its short calls. Programs of one thread only.
#include <chrono>

#include "perf/mpi_preload.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using torii::perf::own;

long calls = 0;
Clock::duration in_calls{};

/// Counts the time from its making to its end.
class Timed {
 public:
  Timed() : begin_(Clock::now()) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() {
    ++calls;
    in_calls += Clock::now() - begin_;
  }

 private:
  Clock::time_point begin_;
};

void write_down() {
  std::FILE* const file = torii::perf::file_of_rank("TORII_CALL_TIMES");
  if (file == nullptr) return;
  std::fprintf(file, "%ld %.6f\n", calls, std::chrono::duration<double>(in_calls).count());
  std::fclose(file);
}

}  // namespace

extern "C" int PMPI_Finalize() {
  write_down();
  return own<int()>("PMPI_Finalize")();
}
extern "C" int MPI_Finalize() { return PMPI_Finalize(); }

// The functions that programs call, MPI_NAME, and those that Fortran's bindings call, PMPI_NAME.
#define TIMED(name, parameters, arguments)                   \
  extern "C" int P##name parameters {                        \
    static auto* const run = own<int parameters>("P" #name); \
    const Timed timed;                                       \
    return run arguments;                                    \
  }                                                          \
  extern "C" int name parameters { return P##name arguments; }

TIMED(MPI_Barrier, (MPI_Comm comm), (comm))
TIMED(MPI_Bcast, (void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
      (buffer, count, type, root, comm))
TIMED(MPI_Reduce, (const void* input, void* result, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
      (input, result, count, type, op, root, comm))
TIMED(MPI_Allreduce, (const void* input, void* result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (input, result, count, type, op, comm))
TIMED(MPI_Scan, (const void* input, void* result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (input, result, count, type, op, comm))
TIMED(MPI_Exscan, (const void* input, void* result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (input, result, count, type, op, comm))
TIMED(MPI_Reduce_scatter_block,
      (const void* input, void* result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (input, result, count, type, op, comm))
TIMED(MPI_Reduce_scatter,
      (const void* input, void* result, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (input, result, counts, type, op, comm))
TIMED(MPI_Allgather,
      (const void* input, int input_count, MPI_Datatype input_type, void* result, int count, MPI_Datatype type,
       MPI_Comm comm),
      (input, input_count, input_type, result, count, type, comm))
TIMED(MPI_Alltoall,
      (const void* input, int input_count, MPI_Datatype input_type, void* result, int count, MPI_Datatype type,
       MPI_Comm comm),
      (input, input_count, input_type, result, count, type, comm))
TIMED(MPI_Gather,
      (const void* input, int input_count, MPI_Datatype input_type, void* result, int count, MPI_Datatype type,
       int root, MPI_Comm comm),
      (input, input_count, input_type, result, count, type, root, comm))
TIMED(MPI_Scatter,
      (const void* input, int input_count, MPI_Datatype input_type, void* result, int count, MPI_Datatype type,
       int root, MPI_Comm comm),
      (input, input_count, input_type, result, count, type, root, comm))
TIMED(MPI_Allgatherv,
      (const void* input, int input_count, MPI_Datatype input_type, void* result, const int* counts, const int* places,
       MPI_Datatype type, MPI_Comm comm),
      (input, input_count, input_type, result, counts, places, type, comm))
TIMED(MPI_Gatherv,
      (const void* input, int input_count, MPI_Datatype input_type, void* result, const int* counts, const int* places,
       MPI_Datatype type, int root, MPI_Comm comm),
      (input, input_count, input_type, result, counts, places, type, root, comm))
TIMED(MPI_Scatterv,
      (const void* input, const int* counts, const int* places, MPI_Datatype input_type, void* result, int count,
       MPI_Datatype type, int root, MPI_Comm comm),
      (input, counts, places, input_type, result, count, type, root, comm))
TIMED(MPI_Alltoallv,
      (const void* input, const int* input_counts, const int* input_places, MPI_Datatype input_type, void* result,
       const int* counts, const int* places, MPI_Datatype type, MPI_Comm comm),
      (input, input_counts, input_places, input_type, result, counts, places, type, comm))
TIMED(MPI_Alltoallw,
      (const void* input, const int* input_counts, const int* input_places, const MPI_Datatype* input_types,
       void* result, const int* counts, const int* places, const MPI_Datatype* types, MPI_Comm comm),
      (input, input_counts, input_places, input_types, result, counts, places, types, comm))
