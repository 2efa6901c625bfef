/* SPDX-License-Identifier: Apache-2.0
 * The slots of blocking operations: torii's where it takes the call, otherwise the saved ones. */
#include "plugins/openmpi/coll_torii.h"

/* MPI's layer returns early for a count of 0 but not for a type without bytes, so ranks may differ in coming here: such
 * a call must wait for nobody. */
bool coll_torii_is_empty(int count, const ompi_datatype_t* type) { return count == 0 || type->super.size == 0; }

static bool are_empty(const int* counts, const ompi_datatype_t* type, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (!coll_torii_is_empty(counts[rank], type)) return false;
  }
  return true;
}

bool coll_torii_begin(coll_torii_operation_t* operation, coll_torii_module_t* module,
                      struct ompi_communicator_t* comm) {
  if (!coll_torii_attach(module, comm)) return false;
  memset(operation, 0, sizeof(*operation));
  operation->call.size = sizeof(operation->call);
  operation->user = &module->user;
  return true;
}

/* Runs a prepared operation. False where torii turns out not to serve the call, which it says to all ranks alike. */
bool coll_torii_run(coll_torii_operation_t* operation, coll_torii_module_t* module, struct ompi_communicator_t* comm,
                    int* status) {
  torii_team* team = module->blocking;
  if (operation->ordered) {
    if (!coll_torii_attach_ordered(module, comm)) {
      operation->finish = FINISH_NOTHING;
      coll_torii_finish(operation);
      return false;
    }
    team = module->ordered;
  }
  torii_status ended = TORII_NO_RESOURCE;
  if (operation->status == OMPI_SUCCESS) {
    ended = torii_run(team, &operation->call);
  } else {
    /* The others are in the call, or will be: they must not wait for this rank. */
    (void)torii_team_abort(team, "a rank has no memory for staging");
  }
  if (ended != TORII_OK) operation->finish = FINISH_NOTHING;
  coll_torii_finish(operation);
  if (ended == TORII_UNSUPPORTED) return false;
  if (ended != TORII_OK) coll_torii_say(0, "communicator %u: %s", comm->c_contextid, torii_last_error());
  *status = coll_torii_error_of(ended);
  atomic_fetch_add_explicit(&mca_coll_torii_component.taken[0][operation->kind], 1, memory_order_relaxed);
  return true;
}

void coll_torii_count_left(const coll_torii_module_t* module, coll_torii_kind_t kind) {
  if (module->state == STATE_BUSY) return;
  atomic_fetch_add_explicit(&mca_coll_torii_component.left[0][kind], 1, memory_order_relaxed);
}

static int barrier(struct ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  if (coll_torii_begin(&operation, module, comm) && coll_torii_prepare_barrier(&operation) == ANSWER_TAKE &&
      coll_torii_run(&operation, module, comm, &status)) {
    return status;
  }
  coll_torii_count_left(module, KIND_BARRIER);
  return module->below_barrier(comm, module->below_barrier_module);
}

static int bcast(void* buffer, int count, ompi_datatype_t* type, int root, struct ompi_communicator_t* comm,
                 mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  if (coll_torii_is_empty(count, type)) return OMPI_SUCCESS;
  if (coll_torii_begin(&operation, module, comm) &&
      coll_torii_prepare_bcast(&operation, buffer, count, type, root, ompi_comm_rank(comm)) == ANSWER_TAKE &&
      coll_torii_run(&operation, module, comm, &status)) {
    return status;
  }
  coll_torii_count_left(module, KIND_BCAST);
  return module->below_bcast(buffer, count, type, root, comm, module->below_bcast_module);
}

static int allgather(const void* input, int input_count, ompi_datatype_t* input_type, void* result, int result_count,
                     ompi_datatype_t* result_type, struct ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  if (coll_torii_is_empty(result_count, result_type)) return OMPI_SUCCESS;
  if (coll_torii_begin(&operation, module, comm) &&
      coll_torii_prepare_allgather(&operation, input, input_count, input_type, result, result_count, result_type,
                                   comm) == ANSWER_TAKE &&
      coll_torii_run(&operation, module, comm, &status)) {
    return status;
  }
  coll_torii_count_left(module, KIND_ALLGATHER);
  return module->below_allgather(input, input_count, input_type, result, result_count, result_type, comm,
                                 module->below_allgather_module);
}

static int allgatherv(const void* input, int input_count, ompi_datatype_t* input_type, void* result, const int* counts,
                      const int* places, ompi_datatype_t* result_type, struct ompi_communicator_t* comm,
                      mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  if (are_empty(counts, result_type, ompi_comm_size(comm))) return OMPI_SUCCESS;
  if (coll_torii_begin(&operation, module, comm) &&
      coll_torii_prepare_allgatherv(&operation, input, input_count, input_type, result, counts, places, result_type,
                                    comm) == ANSWER_TAKE &&
      coll_torii_run(&operation, module, comm, &status)) {
    return status;
  }
  coll_torii_count_left(module, KIND_ALLGATHERV);
  return module->below_allgatherv(input, input_count, input_type, result, counts, places, result_type, comm,
                                  module->below_allgatherv_module);
}

static int allreduce(const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op,
                     struct ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  if (coll_torii_is_empty(count, type)) return OMPI_SUCCESS;
  if (coll_torii_begin(&operation, module, comm) &&
      coll_torii_prepare_allreduce(&operation, input, result, count, type, op) == ANSWER_TAKE &&
      coll_torii_run(&operation, module, comm, &status)) {
    return status;
  }
  coll_torii_count_left(module, KIND_ALLREDUCE);
  return module->below_allreduce(input, result, count, type, op, comm, module->below_allreduce_module);
}

static int reduce(const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op, int root,
                  struct ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  if (coll_torii_is_empty(count, type)) return OMPI_SUCCESS;
  if (coll_torii_begin(&operation, module, comm) &&
      coll_torii_prepare_reduce(&operation, input, result, count, type, op, root, ompi_comm_rank(comm)) ==
          ANSWER_TAKE &&
      coll_torii_run(&operation, module, comm, &status)) {
    return status;
  }
  coll_torii_count_left(module, KIND_REDUCE);
  return module->below_reduce(input, result, count, type, op, root, comm, module->below_reduce_module);
}

static int reduce_scatter(const void* input, void* result, const int* counts, ompi_datatype_t* type, ompi_op_t* op,
                          struct ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  if (are_empty(counts, type, ompi_comm_size(comm))) return OMPI_SUCCESS;
  if (coll_torii_begin(&operation, module, comm) &&
      coll_torii_prepare_reduce_scatter(&operation, input, result, counts, type, op, ompi_comm_size(comm)) ==
          ANSWER_TAKE &&
      coll_torii_run(&operation, module, comm, &status)) {
    return status;
  }
  coll_torii_count_left(module, KIND_REDUCE_SCATTER);
  return module->below_reduce_scatter(input, result, counts, type, op, comm, module->below_reduce_scatter_module);
}

static int reduce_scatter_block(const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op,
                                struct ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  if (coll_torii_is_empty(count, type)) return OMPI_SUCCESS;
  if (coll_torii_begin(&operation, module, comm) &&
      coll_torii_prepare_reduce_scatter_block(&operation, input, result, count, type, op, ompi_comm_size(comm)) ==
          ANSWER_TAKE &&
      coll_torii_run(&operation, module, comm, &status)) {
    return status;
  }
  coll_torii_count_left(module, KIND_REDUCE_SCATTER_BLOCK);
  return module->below_reduce_scatter_block(input, result, count, type, op, comm,
                                            module->below_reduce_scatter_block_module);
}

void coll_torii_set_blocking(mca_coll_base_module_t* module) {
#define SET(name) module->coll_##name = name;
  COLL_TORII_OPERATIONS(SET)
#undef SET
}
