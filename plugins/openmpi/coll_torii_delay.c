/* SPDX-License-Identifier: Apache-2.0
 * The use of a communicator from which on it gets teams. */
#include "plugins/openmpi/coll_torii_delay.h"

#include "plugins/openmpi/coll_torii_state.h"

/* A call of so many bytes counts as one short call more: torii saves about as much time on these bytes. */
#define BYTES_LIKE_A_CALL 16384

/* The bytes of a call if they are equal on all ranks, or 0. */
static size_t equal_bytes(const coll_torii_operation_t* operation) {
  const torii_call* const call = &operation->call;
  switch (operation->kind) {
    case KIND_barrier:
    case KIND_allgatherv:
    case KIND_gatherv:
    case KIND_scatterv:
    case KIND_alltoallv:
    case KIND_alltoallw:
    case KIND_reduce_scatter:
      return 0;
    default:
      return call->count * (call->op == TORII_USER ? call->user_bytes : torii_type_bytes(call->type));
  }
}

bool coll_torii_pays(coll_torii_module_t* module, const coll_torii_operation_t* operation) {
  if (module->blocking_use >= coll_torii_state.delay) return true;
  module->blocking_use += 1 + (int64_t)(equal_bytes(operation) / BYTES_LIKE_A_CALL);
  return false;
}

bool coll_torii_pays_in_background(coll_torii_module_t* module) {
  return module->background_use >= coll_torii_state.delay;
}
