// SPDX-License-Identifier: Apache-2.0
// The one file that sees an MPI's header. Besides the build, `perf/compare --mpi NAME=PREFIX` compiles it.
#include "perf/mpi_module.hpp"

#include <mpi.h>

#include <cstdlib>
#include <cstring>

namespace torii::perf {
namespace {

MPI_Datatype type_of(torii_type type) {
  switch (type) {
    case TORII_U8:
      return MPI_UINT8_T;
    case TORII_I32:
      return MPI_INT32_T;
    case TORII_I64:
      return MPI_INT64_T;
    case TORII_U64:
      return MPI_UINT64_T;
    case TORII_F32:
      return MPI_FLOAT;
    case TORII_F64:
      return MPI_DOUBLE;
    default:
      return MPI_DATATYPE_NULL;
  }
}

MPI_Op op_of(torii_op op) {
  switch (op) {
    case TORII_SUM:
      return MPI_SUM;
    case TORII_PROD:
      return MPI_PROD;
    case TORII_MIN:
      return MPI_MIN;
    case TORII_MAX:
      return MPI_MAX;
    default:
      return MPI_OP_NULL;
  }
}

void init(int* argc, char*** argv) { MPI_Init(argc, argv); }
void finalize() { MPI_Finalize(); }

void abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::exit(exit_code);
}

int rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int ranks() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

void library_version(char* text, std::size_t bytes) {
  char whole[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(whole, &length);
  std::strncpy(text, whole, bytes - 1);
  text[bytes - 1] = 0;
}

int exchange(const void* mine, void* all, std::size_t bytes, void* /*data*/) {
  const int count = static_cast<int>(bytes);
  return MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD);
}

void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

MpiGroup split(int color) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, color < 0 ? MPI_UNDEFINED : color, 0, &comm);
  return comm == MPI_COMM_NULL ? nullptr : new MPI_Comm(comm);
}

void free(MpiGroup group) {
  auto* const comm = static_cast<MPI_Comm*>(group);
  MPI_Comm_free(comm);
  delete comm;
}

int run_unequal(const torii_call& call, MPI_Datatype type, MPI_Comm comm, const MpiCounts& counts) {
  const int own = static_cast<int>(call.count);
  switch (call.collective) {
    case TORII_ALLTOALL:
      return MPI_Alltoallv(call.input, counts.input_counts, counts.input_displacements, type, call.result,
                           counts.result_counts, counts.result_displacements, type, comm);
    case TORII_ALL_GATHER:
      return MPI_Allgatherv(call.input, own, type, call.result, counts.result_counts, counts.result_displacements, type,
                            comm);
    case TORII_GATHER:
      return MPI_Gatherv(call.input, own, type, call.result, counts.result_counts, counts.result_displacements, type,
                         call.root, comm);
    case TORII_SCATTER:
      return MPI_Scatterv(call.input, counts.input_counts, counts.input_displacements, type, call.result, own, type,
                          call.root, comm);
    default:
      return MPI_ERR_OTHER;
  }
}

int run_equal(const torii_call& call, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const int count = static_cast<int>(call.count);
  const void* const input = call.input == call.result ? MPI_IN_PLACE : call.input;
  switch (call.collective) {
    case TORII_BARRIER:
      return MPI_Barrier(comm);
    case TORII_BROADCAST:
      return MPI_Bcast(call.result, count, type, call.root, comm);
    case TORII_REDUCE:
      return MPI_Reduce(input, call.result, count, type, op, call.root, comm);
    case TORII_ALLREDUCE:
      return MPI_Allreduce(input, call.result, count, type, op, comm);
    case TORII_ALL_GATHER:
      return MPI_Allgather(call.input, count, type, call.result, count, type, comm);
    case TORII_REDUCE_SCATTER:
      return MPI_Reduce_scatter_block(call.input, call.result, count, type, op, comm);
    case TORII_SCAN:
      return MPI_Scan(input, call.result, count, type, op, comm);
    case TORII_EXSCAN:
      return MPI_Exscan(input, call.result, count, type, op, comm);
    case TORII_ALLTOALL:
      return MPI_Alltoall(call.input, count, type, call.result, count, type, comm);
    case TORII_SCATTER:
      return MPI_Scatter(call.input, count, type, call.result, count, type, call.root, comm);
    case TORII_GATHER:
      return MPI_Gather(call.input, count, type, call.result, count, type, call.root, comm);
  }
  return MPI_ERR_OTHER;
}

torii_status run(const torii_call* call, MpiGroup group, const MpiCounts* counts) {
  const MPI_Comm comm = group == nullptr ? MPI_COMM_WORLD : *static_cast<MPI_Comm*>(group);
  const MPI_Datatype type = type_of(call->type);
  const MPI_Op op = op_of(call->op);
  if (type == MPI_DATATYPE_NULL || op == MPI_OP_NULL) return TORII_UNSUPPORTED;
  const int code = counts != nullptr ? run_unequal(*call, type, comm, *counts) : run_equal(*call, type, op, comm);
  return code == MPI_SUCCESS ? TORII_OK : TORII_TRANSPORT;
}

void send(const void* from, int bytes, int to) { MPI_Send(from, bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD); }

void receive(void* to, int bytes, int from) {
  MPI_Recv(to, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void exchange_with(const void* mine, void* theirs, int bytes, int peer) {
  MPI_Sendrecv(mine, bytes, MPI_BYTE, peer, 2, theirs, bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

}  // namespace
}  // namespace torii::perf

extern "C" const torii::perf::MpiModule torii_mpi_module = {
    torii::perf::init,     torii::perf::finalize,     torii::perf::abort,
    torii::perf::rank,     torii::perf::ranks,        torii::perf::library_version,
    torii::perf::exchange, torii::perf::barrier,      torii::perf::split,
    torii::perf::free,     torii::perf::run,          torii::perf::send,
    torii::perf::receive,  torii::perf::exchange_with};
