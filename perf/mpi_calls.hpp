// SPDX-License-Identifier: Apache-2.0
// The MPI side of the comparisons: its start, the exchange by which torii joins, and MPI's own collectives.
#pragma once

#include <torii/torii.h>

#include <string>

#include "perf/mpi_module.hpp"

namespace torii::perf {

/// MPI from MPI_Init to MPI_Finalize. One object per process. Which MPI, says the name of the program: PROGRAM.NAME
/// opens torii_mpi_NAME.so, beside it.
class Mpi {
 public:
  /// Ends the process with a message and code 3 where there is no such module. MPI is not initialized where the command
  /// line is --help or --version alone: each process then is rank 0 of 1.
  Mpi(int& argc, char**& argv);
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// "Open MPI 4.1.4" or "MPICH 4.0.2".
  static std::string version();
  /// MPI_Allgather as the exchange of torii_context_create.
  static int exchange(const void* mine, void* all, size_t bytes, void* data) {
    return module_->exchange(mine, all, bytes, data);
  }
  static torii_status run(const torii_call& call, MpiGroup group = nullptr, const MpiCounts* counts = nullptr) {
    return module_->run(&call, group, counts);
  }
  static void barrier() { module_->barrier(); }
  static const MpiModule& module() { return *module_; }
  [[noreturn]] static void abort(int exit_code);

 private:
  static const MpiModule* module_;
  bool is_initialized_ = false;
  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace torii::perf
