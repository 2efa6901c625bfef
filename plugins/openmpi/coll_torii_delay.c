/* SPDX-License-Identifier: Apache-2.0
 * The use of a communicator from which on it gets teams. */
#include "plugins/openmpi/coll_torii_delay.h"

#include "plugins/openmpi/coll_torii_state.h"

/* So many bytes count as one short call more. With perf/results/2026-11-26-inside-open-mpi.txt: torii saves 0.1 to 0.2
 * us of a short call with 2 ranks and 1 to 2 us with 4 on two CPUs. It saves about ten times as much of 4 KiB. */
#define BYTES_LIKE_A_CALL 512
/* The guess for a call whose length not all ranks know. */
#define BYTES_UNKNOWN 4096

static size_t bytes_of(const coll_torii_operation_t* operation) {
  const torii_call* const call = &operation->call;
  switch (operation->kind) {
    case KIND_barrier:
      return 0;
    case KIND_allgatherv:
    case KIND_gatherv:
    case KIND_scatterv:
    case KIND_alltoallv:
    case KIND_alltoallw:
    case KIND_reduce_scatter:
      return BYTES_UNKNOWN;
    default:
      return call->count * (call->op == TORII_USER ? call->user_bytes : torii_type_bytes(call->type));
  }
}

static int64_t use_of(const coll_torii_operation_t* operation) {
  return 1 + (int64_t)(bytes_of(operation) / BYTES_LIKE_A_CALL);
}

bool coll_torii_pays(coll_torii_module_t* module, const coll_torii_operation_t* operation) {
  if (module->blocking_use >= coll_torii_state.delay) return true;
  module->blocking_use += use_of(operation);
  return false;
}

bool coll_torii_pays_in_background(const coll_torii_module_t* module) {
  return module->background_use > 0 && module->background_use >= coll_torii_state.delay;
}

void coll_torii_count_in_background(coll_torii_module_t* module, const coll_torii_operation_t* operation) {
  module->background_use += use_of(operation);
}
