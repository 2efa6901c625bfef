// SPDX-License-Identifier: Apache-2.0
// Compiled once against each MPI. Counts are ints there: the comparison stays below 2^31 elements.
#include "perf/mpi_calls.hpp"

#include <mpi.h>

#include <cctype>
#include <cstdlib>
#include <cstring>

namespace torii::perf {

Mpi::Mpi(int& argc, char**& argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
}

Mpi::~Mpi() { MPI_Finalize(); }

std::string Mpi::version() {
  // The library says "Open MPI v4.1.4, package: ..." or "MPICH Version: <blanks> 4.0.2" and more lines of itself.
  // It may be of another release than the headers that this file was compiled with.
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version;
  for (const char c : std::string(text, static_cast<size_t>(length))) {
    if (c == ',' || c == '\n') break;
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      version += c;
    } else if (!version.empty() && version.back() != ' ') {
      version += ' ';
    }
  }
  for (const char* const word : {"Version: ", " v"}) {
    const size_t at = version.find(word);
    if (at != std::string::npos) version.replace(at, std::strlen(word), *word == ' ' ? " " : "");
  }
  return version;
}

int Mpi::exchange(const void* mine, void* all, size_t bytes, void* /*data*/) {
  const int count = static_cast<int>(bytes);
  return MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD);
}

torii_status Mpi::run(const torii_call& call) {
  const int count = static_cast<int>(call.count);
  int code = MPI_SUCCESS;
  switch (call.collective) {
    case TORII_BARRIER:
      code = MPI_Barrier(MPI_COMM_WORLD);
      break;
    case TORII_BROADCAST:
      code = MPI_Bcast(call.result, count, MPI_FLOAT, call.root, MPI_COMM_WORLD);
      break;
    case TORII_REDUCE:
      code = MPI_Reduce(call.input, call.result, count, MPI_FLOAT, MPI_SUM, call.root, MPI_COMM_WORLD);
      break;
    case TORII_ALLREDUCE:
      code = MPI_Allreduce(call.input, call.result, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case TORII_ALL_GATHER:
      code = MPI_Allgather(call.input, count, MPI_FLOAT, call.result, count, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    case TORII_REDUCE_SCATTER:
      code = MPI_Reduce_scatter_block(call.input, call.result, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case TORII_SCAN:
      code = MPI_Scan(call.input, call.result, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case TORII_EXSCAN:
      code = MPI_Exscan(call.input, call.result, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case TORII_ALLTOALL:
      code = MPI_Alltoall(call.input, count, MPI_FLOAT, call.result, count, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    case TORII_SCATTER:
      code = MPI_Scatter(call.input, count, MPI_FLOAT, call.result, count, MPI_FLOAT, call.root, MPI_COMM_WORLD);
      break;
    case TORII_GATHER:
      code = MPI_Gather(call.input, count, MPI_FLOAT, call.result, count, MPI_FLOAT, call.root, MPI_COMM_WORLD);
      break;
  }
  return code == MPI_SUCCESS ? TORII_OK : TORII_TRANSPORT;
}

void Mpi::barrier() { MPI_Barrier(MPI_COMM_WORLD); }

void Mpi::abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::exit(exit_code);
}

}  // namespace torii::perf
