// SPDX-License-Identifier: Apache-2.0
// The functions of MPI behind those that a preloaded library puts before them.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace torii::perf {

/// Finds MPI's own function behind that of the preloaded library.
template <class Function>
Function* own(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "a preloaded library of torii's: this MPI has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

/// Opens the file of this rank: the value of `variable`, a dot and the rank. Null if the variable is not set, or the
/// file cannot be written.
inline std::FILE* file_of_rank(const char* variable) {
  const char* const name = std::getenv(variable);
  if (name == nullptr) return nullptr;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::FILE* const file = std::fopen((std::string(name) + "." + std::to_string(rank)).c_str(), "w");
  if (file == nullptr) std::perror(name);
  return file;
}

}  // namespace torii::perf
