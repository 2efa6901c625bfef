// SPDX-License-Identifier: Apache-2.0
// The functions of an MPI that perf programs call, in a table: the headers of each MPI give other values to the
// same names. mpi_module.cpp is compiled once against each MPI, and mpi_calls.cpp opens what came of it.
#pragma once

#include <torii/torii.h>

#include <cstddef>

namespace torii::perf {

/// The counts and displacements of a call with `unequal`, as MPI wants them.
struct MpiCounts {
  const int* input_counts;
  const int* input_displacements;
  const int* result_counts;
  const int* result_displacements;
};

/// A communicator of MPI: the address of its handle, which begins with that of all ranks.
using MpiGroup = void*;

struct MpiModule {
  void (*init)(int* argc, char*** argv);
  void (*finalize)();
  void (*abort)(int exit_code);
  int (*rank)();
  int (*ranks)();
  /// Writes the text of MPI_Get_library_version, cut to `bytes` with its 0.
  void (*library_version)(char* text, std::size_t bytes);
  /// MPI_Allgather as the exchange of torii_context_create.
  torii_exchange exchange;
  void (*barrier)();
  /// Collective. The ranks of equal colour, ordered by rank; a colour below 0 joins none (nullptr).
  MpiGroup (*split)(int color);
  void (*free)(MpiGroup group);
  /// MPI's collective on the operands of `call`; counts are ints. `counts` only with call.unequal. Where the input of
  /// an allreduce, a reduce, a scan or an exscan is its result, it runs in place. TORII_UNSUPPORTED for types and
  /// operations that MPI lacks.
  torii_status (*run)(const torii_call* call, MpiGroup group, const MpiCounts* counts);
  void (*send)(const void* from, int bytes, int to);
  void (*receive)(void* to, int bytes, int from);
  void (*exchange_with)(const void* mine, void* theirs, int bytes, int peer);
};

/// The name of the module's only symbol: a `const MpiModule`.
inline constexpr const char* kMpiModuleSymbol = "torii_mpi_module";

}  // namespace torii::perf

extern "C" __attribute__((visibility("default"))) const torii::perf::MpiModule torii_mpi_module;
