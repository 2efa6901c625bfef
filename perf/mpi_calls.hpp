// SPDX-License-Identifier: Apache-2.0
// The MPI side of the comparison: start, the exchange by which torii joins, and MPI's own collectives.
#pragma once

#include <torii/torii.h>

#include <string>

namespace torii::perf {

/// MPI from MPI_Init to MPI_Finalize. One object per process.
class Mpi {
 public:
  Mpi(int& argc, char**& argv);
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// "Open MPI 4.1.4" or "MPICH 4.0.2".
  static std::string version();
  /// MPI_Allgather as the exchange of torii_context_create.
  static int exchange(const void* mine, void* all, size_t bytes, void* data);
  /// MPI's collective on the operands of `call`, which must be f32, out of place and, where it combines, a sum.
  static torii_status run(const torii_call& call);
  static void barrier();
  [[noreturn]] static void abort(int exit_code);

 private:
  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace torii::perf
