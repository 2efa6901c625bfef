// SPDX-License-Identifier: Apache-2.0
// Takes the time of an MPI program from the end of MPI_Init to the beginning of MPI_Finalize, for perf/programs.
// Preloaded into each rank:
//   mpirun.openmpi -n 4 -x LD_PRELOAD=torii_program_time_openmpi.so -x TORII_PROGRAM_TIME=time program
// Each rank writes its seconds to time.RANK. C programs call MPI_Init; Fortran's bindings call PMPI_Init.
#include <chrono>

#include "perf/mpi_preload.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using torii::perf::own;

Clock::time_point begin;

int begun(int status) {
  begin = Clock::now();
  return status;
}

void write_down() {
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::FILE* const file = torii::perf::file_of_rank("TORII_PROGRAM_TIME");
  if (file == nullptr) return;
  std::fprintf(file, "%.6f\n", seconds);
  std::fclose(file);
}

}  // namespace

extern "C" int PMPI_Init(int* argc, char*** argv) { return begun(own<int(int*, char***)>("PMPI_Init")(argc, argv)); }
extern "C" int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }

extern "C" int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return begun(own<int(int*, char***, int, int*)>("PMPI_Init_thread")(argc, argv, required, provided));
}
extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return PMPI_Init_thread(argc, argv, required, provided);
}

extern "C" int PMPI_Finalize() {
  write_down();
  return own<int()>("PMPI_Finalize")();
}
extern "C" int MPI_Finalize() { return PMPI_Finalize(); }
