// SPDX-License-Identifier: Apache-2.0
// The case of mpi_semantics for groups whose first calls are left to the component below. It needs the parameters
// coll_torii_delay=4 and coll_torii_verbose=1; test_clients.cpp compares the counters with the numbers in comments.
// Each part uses an operation of its own, so that nothing else changes the counter.
#include <mpi.h>
// Behind mpi.h, which it does not include.
#include <mpi-ext.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/clients/semantics.hpp"

namespace torii::clients {
namespace {

constexpr int kDelay = 4;

MPI_Comm copy_of_world() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  return comm;
}

/// exscan: 2 x 4 are left, 3 taken. Every other rank works in place.
void calls_below_then_here() {
  for (const int calls : {kDelay, kDelay + 3}) {
    MPI_Comm comm = copy_of_world();
    for (int call = 0; call < calls; ++call) {
      int sum = rank;
      const int own = rank;
      MPI_Exscan(rank % 2 == 0 ? MPI_IN_PLACE : &own, &sum, 1, MPI_INT, MPI_SUM, comm);
      expect(rank == 0 || sum == rank * (rank - 1) / 2, "exscan " + std::to_string(call));
    }
    MPI_Comm_free(&comm);
  }
}

/// scatter: 4 are left, 1 taken. Empty calls, which not all ranks bring to the component, count nowhere.
void empty_calls_do_not_count() {
  MPI_Comm comm = copy_of_world();
  MPI_Datatype nothing;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  std::vector<int> values(static_cast<std::size_t>(ranks), 5);
  for (int call = 0; call < kDelay + 1; ++call) {
    for (int empty = 0; empty < 3; ++empty)
      MPI_Bcast(values.data(), rank == 0 ? 1 : 0, rank == 0 ? nothing : MPI_INT, 0, comm);
    const std::vector<int> counts(values.size(), rank == 0 ? 1 : 0);
    const std::vector<int> places(values.size(), 0);
    MPI_Datatype const type = rank == 0 ? nothing : MPI_INT;
    MPI_Allgatherv(values.data(), counts[0], type, values.data(), counts.data(), places.data(), type, comm);
    int got = 0;
    MPI_Scatter(values.data(), 1, MPI_INT, &got, 1, MPI_INT, 0, comm);
    expect(got == 5, "scatter " + std::to_string(call));
  }
  MPI_Type_free(&nothing);
  MPI_Comm_free(&comm);
}

/// alltoall: 1 is left, 1 taken. One long call counts as several short ones.
void long_calls_count_more() {
  MPI_Comm comm = copy_of_world();
  const int count = 1 << 16;
  const auto all = static_cast<std::size_t>(count * ranks);
  std::vector<int> in(all, rank), out(all);
  for (int call = 0; call < 2; ++call) {
    MPI_Alltoall(in.data(), count, MPI_INT, out.data(), count, MPI_INT, comm);
    for (std::size_t i = 0; i < all; i += 1000) expect(out[i] == static_cast<int>(i) / count, "alltoall");
  }
  MPI_Comm_free(&comm);
}

/// iscan: 4 + 1 are left, since only the barrier makes a team, and 2 taken; the barrier is left too.
void non_blocking_calls() {
  MPI_Comm comm = copy_of_world();
  for (int call = 0; call < kDelay + 3; ++call) {
    int sum = 0;
    MPI_Request request;
    MPI_Iscan(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(sum == rank * (rank + 1) / 2, "iscan " + std::to_string(call));
    if (call == kDelay) MPI_Barrier(comm);
  }
  MPI_Comm_free(&comm);
}

/// reduce_init: 3 starts are taken at once, since persistent operations are used again; gather: 1 is left.
void persistent_calls() {
  MPI_Comm comm = copy_of_world();
  int sum = 0;
  MPI_Request request;
  MPIX_Reduce_init(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, comm, MPI_INFO_NULL, &request);
  std::vector<int> got(static_cast<std::size_t>(ranks));
  MPI_Gather(&rank, 1, MPI_INT, got.data(), 1, MPI_INT, 0, comm);
  for (int start = 0; start < 3; ++start) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(rank != 0 || sum == ranks * (ranks - 1) / 2, "a persistent reduce");
  }
  MPI_Request_free(&request);
  MPI_Comm_free(&comm);
}

/// scan: 4 of each of 3 threads are left, 2 of each taken.
void calls_of_threads() {
  constexpr int kThreads = 3;
  MPI_Comm comms[kThreads];
  for (MPI_Comm& comm : comms) comm = copy_of_world();
  MPI_Op second;
  MPI_Op_create([](void* /*left*/, void* /*right*/, int* /*length*/, MPI_Datatype* /*type*/) {}, 0, &second);
  std::vector<std::thread> running;
  for (MPI_Comm comm : comms) {
    running.emplace_back([=] {
      for (int call = 0; call < kDelay + 2; ++call) {
        const int own = rank;
        int last = -1;
        MPI_Scan(&own, &last, 1, MPI_INT, second, comm);
        expect(last == rank, "a scan of a thread");
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  MPI_Op_free(&second);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

}  // namespace

void delayed_teams() {
  calls_below_then_here();
  empty_calls_do_not_count();
  long_calls_count_more();
  non_blocking_calls();
  persistent_calls();
  calls_of_threads();
}

}  // namespace torii::clients
