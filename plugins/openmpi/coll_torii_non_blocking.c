/* SPDX-License-Identifier: Apache-2.0
 * The slots of non-blocking operations. */
#include "plugins/openmpi/coll_torii_delay.h"
#include "plugins/openmpi/coll_torii_describe.h"
#include "plugins/openmpi/coll_torii_report.h"
#include "plugins/openmpi/coll_torii_request.h"
#include "plugins/openmpi/coll_torii_slots.h"
#include "plugins/openmpi/coll_torii_staging.h"

/* Open MPI numbers communicators by iallreduce of one int by max or min. For an intercommunicator, it uses ireduce and
 * ibcast of one int within each group. MPI_Comm_idup starts these calls from inside opal_progress(), on each rank at
 * another place among the operations of the communicator. Torii wants one order on all ranks, so it leaves every call
 * that looks like them, and does not count it. */
static bool looks_internal(const coll_torii_operation_t* operation) {
  const torii_call* const call = &operation->call;
  if (call->count * torii_type_bytes(call->type) != sizeof(int)) return false;
  if (operation->kind == KIND_bcast) return true;
  if (operation->kind != KIND_allreduce && operation->kind != KIND_reduce) return false;
  return call->count == 1 && (call->op == TORII_MAX || call->op == TORII_MIN);
}

static torii_status start_prepared(coll_torii_request_t* request, torii_team* team) {
  torii_status status = TORII_NO_RESOURCE;
  pthread_mutex_lock(&coll_torii_lock);
  if (request->operation.status == OMPI_SUCCESS) {
    status = torii_start(team, &request->operation.call, &request->request);
    if (status == TORII_OK) coll_torii_add_active(request);
  } else {
    (void)torii_team_abort(team, "a rank has no memory for staging");
  }
  pthread_mutex_unlock(&coll_torii_lock);
  return status;
}

static coll_torii_reason_t reason_of(coll_torii_answer_t answer, const coll_torii_operation_t* operation,
                                     const coll_torii_module_t* module) {
  if (answer == ANSWER_LEAVE) return REASON_REDUCTION;
  if (looks_internal(operation)) return REASON_INTERNAL;
  if (module->states[TEAM_BACKGROUND] == STATE_NEW) return REASON_BEFORE_TEAM;
  return module->states[TEAM_BACKGROUND] == STATE_FAILED ? REASON_NO_TEAM : REASON_UNSERVED;
}

/* Starts a described call. False if the call is left to the component below; all ranks then leave it. A call that fails
 * leaves MPI_REQUEST_NULL in `handle`, as calls of libnbc do. */
static bool start(coll_torii_operation_t* operation, coll_torii_answer_t answer, coll_torii_module_t* module,
                  struct ompi_communicator_t* comm, int64_t use, ompi_request_t** handle, int* status) {
  *status = OMPI_SUCCESS;
  *handle = MPI_REQUEST_NULL;
  if (answer == ANSWER_DONE) {
    *handle = &ompi_request_empty;
    coll_torii_release(operation);
    return true;
  }
  const bool is_taken = answer == ANSWER_TAKE && !looks_internal(operation);
  /* A blocking or persistent operation makes the team, because making one waits for other ranks. */
  if (is_taken && module->states[TEAM_BACKGROUND] == STATE_NEW) module->background_use += use;
  torii_status started = TORII_UNSUPPORTED;
  if (is_taken && module->states[TEAM_BACKGROUND] == STATE_ATTACHED) {
    coll_torii_request_t* const request = coll_torii_make_request(module, comm, operation, false);
    if (request == NULL) {
      coll_torii_release(operation);
      (void)torii_team_abort(module->teams[TEAM_BACKGROUND], "a rank has no memory for a request");
      *status = OMPI_ERR_OUT_OF_RESOURCE;
      return true;
    }
    coll_torii_keep_arrays(&request->operation);
    coll_torii_acquire(&request->operation);
    coll_torii_load(&request->operation);
    started = start_prepared(request, module->teams[TEAM_BACKGROUND]);
    if (started == TORII_OK) {
      *handle = &request->super.super;
    } else {
      coll_torii_drop_request(request);
    }
  } else {
    coll_torii_release(operation);
  }
  if (started == TORII_UNSUPPORTED) {
    coll_torii_count_left(reason_of(answer, operation, module), FORM_NON_BLOCKING, operation->kind);
    return false;
  }
  if (started != TORII_OK) coll_torii_say(0, "communicator %u: %s", comm->c_contextid, torii_last_error());
  *status = coll_torii_error_of(started);
  coll_torii_count_taken(FORM_NON_BLOCKING, operation->kind);
  return true;
}

#define SLOT(name, parameters, arguments)                                                                      \
  static int i##name(COLL_TORII_LIST parameters struct ompi_communicator_t* comm, ompi_request_t** handle,     \
                     mca_coll_base_module_t* base) {                                                           \
    coll_torii_module_t* const module = (coll_torii_module_t*)base;                                            \
    coll_torii_operation_t operation;                                                                          \
    int status;                                                                                                \
    coll_torii_begin(&operation, KIND_##name);                                                                 \
    const coll_torii_answer_t answer = coll_torii_describe_##name(&operation, COLL_TORII_LIST arguments comm); \
    if (start(&operation, answer, module, comm, COLL_TORII_USE_##name, handle, &status)) return status;        \
    return module->below_i##name(COLL_TORII_LIST arguments comm, handle, module->below_i##name##_module);      \
  }
COLL_TORII_OPERATIONS(SLOT)
#undef SLOT

void coll_torii_set_non_blocking(mca_coll_base_module_t* module) {
#define SET(name, parameters, arguments) module->coll_i##name = i##name;
  COLL_TORII_OPERATIONS(SET)
#undef SET
}
