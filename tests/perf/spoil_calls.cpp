// SPDX-License-Identifier: Apache-2.0
// Preloaded into perf's own MPI programs: one element of what a rank receives is wrong, so their proofs must fail.
#include "perf/mpi_preload.hpp"

using torii::perf::own;

extern "C" int MPI_Sendrecv(const void* input, int input_count, MPI_Datatype input_type, int to, int input_tag,
                            void* result, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                            MPI_Status* status) {
  static auto* const run = own<decltype(PMPI_Sendrecv)>("PMPI_Sendrecv");
  const int code = run(input, input_count, input_type, to, input_tag, result, count, type, from, tag, comm, status);
  if (from != MPI_PROC_NULL) static_cast<double*>(result)[0] += 1e-3;
  return code;
}

extern "C" int MPI_Alltoallv(const void* input, const int* input_counts, const int* input_places,
                             MPI_Datatype input_type, void* result, const int* counts, const int* places,
                             MPI_Datatype type, MPI_Comm comm) {
  static auto* const run = own<decltype(PMPI_Alltoallv)>("PMPI_Alltoallv");
  const int code = run(input, input_counts, input_places, input_type, result, counts, places, type, comm);
  static_cast<int*>(result)[0] ^= 1;
  return code;
}

extern "C" int MPI_Allgatherv(const void* input, int input_count, MPI_Datatype input_type, void* result,
                              const int* counts, const int* places, MPI_Datatype type, MPI_Comm comm) {
  static auto* const run = own<decltype(PMPI_Allgatherv)>("PMPI_Allgatherv");
  const int code = run(input, input_count, input_type, result, counts, places, type, comm);
  static_cast<double*>(result)[0] += 1e-3;
  return code;
}
