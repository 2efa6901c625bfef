// SPDX-License-Identifier: Apache-2.0
// The program of which scarce_malloc lets one allocation fail: blocking and persistent operations on new groups.
// Results must be right, whoever runs the operations.
#include <mpi.h>
// After mpi.h, on which it depends.
#include <mpi-ext.h>

#include <cstdio>

namespace {

bool is_right(int sum, int ranks) { return sum == ranks * (ranks - 1) / 2; }

bool use(MPI_Comm comm) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  int sum = -1;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  bool right = is_right(sum, ranks);
  for (int i = 0; i < 2; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPIX_Allreduce_init(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    for (int round = 0; round < 2; ++round) {
      sum = -1;
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      right = right && is_right(sum, ranks);
    }
    MPI_Request_free(&request);
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool right = use(MPI_COMM_WORLD);
  MPI_Comm twin = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  right = use(twin) && right;
  MPI_Comm_free(&twin);
  std::puts(right ? "all results are right" : "a result is wrong");
  MPI_Finalize();
  return right ? 0 : 1;
}
