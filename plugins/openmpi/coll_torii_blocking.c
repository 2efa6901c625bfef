/* SPDX-License-Identifier: Apache-2.0
 * The slots of blocking operations. A call that torii does not take goes to the saved slot. */
#include "plugins/openmpi/coll_torii_attach.h"
#include "plugins/openmpi/coll_torii_describe.h"
#include "plugins/openmpi/coll_torii_report.h"
#include "plugins/openmpi/coll_torii_slots.h"
#include "plugins/openmpi/coll_torii_staging.h"

/* Runs the call on `team`, with staging in place of the caller's memory. */
static torii_status run_staged(coll_torii_operation_t* operation, torii_team* team) {
  coll_torii_acquire(operation);
  coll_torii_load(operation);
  torii_status ended = TORII_NO_RESOURCE;
  if (operation->status == OMPI_SUCCESS) {
    ended = torii_run(team, &operation->call);
  } else {
    /* The other ranks come to the call too; they must not wait for this rank. */
    (void)torii_team_abort(team, "a rank has no memory for staging");
  }
  if (ended == TORII_OK) coll_torii_store(operation);
  return ended;
}

/* Runs a described call. False if the call is left to the component below; all ranks then leave it. */
static bool run(coll_torii_operation_t* operation, coll_torii_answer_t answer, coll_torii_module_t* module,
                struct ompi_communicator_t* comm, int* status) {
  *status = OMPI_SUCCESS;
  torii_status ended = answer == ANSWER_DONE ? TORII_OK : TORII_UNSUPPORTED;
  torii_team* const team =
      answer == ANSWER_TAKE ? coll_torii_attach(module, comm, operation->ordered ? TEAM_ORDERED : TEAM_BLOCKING) : NULL;
  if (team != NULL) {
    module->user = operation->user;
    operation->call.user_data = &module->user;
    ended = coll_torii_is_direct(operation) ? torii_run(team, &operation->call) : run_staged(operation, team);
  }
  if (!coll_torii_is_direct(operation)) coll_torii_release(operation);
  if (answer == ANSWER_DONE) return true;
  if (ended == TORII_UNSUPPORTED) {
    /* The calls by which the component below sets up the teams are not counted. */
    if (module->states[TEAM_BLOCKING] != STATE_BUSY) coll_torii_count_left(FORM_BLOCKING, operation->kind);
    return false;
  }
  if (ended != TORII_OK) coll_torii_say(0, "communicator %u: %s", comm->c_contextid, torii_last_error());
  *status = coll_torii_error_of(ended);
  coll_torii_count_taken(FORM_BLOCKING, operation->kind);
  return true;
}

#define SLOT(name, parameters, arguments)                                                                      \
  static int name(COLL_TORII_LIST parameters struct ompi_communicator_t* comm, mca_coll_base_module_t* base) { \
    coll_torii_module_t* const module = (coll_torii_module_t*)base;                                            \
    coll_torii_operation_t operation;                                                                          \
    int status;                                                                                                \
    coll_torii_begin(&operation, KIND_##name);                                                                 \
    const coll_torii_answer_t answer = coll_torii_describe_##name(&operation, COLL_TORII_LIST arguments comm); \
    if (run(&operation, answer, module, comm, &status)) return status;                                         \
    return module->below_##name(COLL_TORII_LIST arguments comm, module->below_##name##_module);                \
  }
COLL_TORII_OPERATIONS(SLOT)
#undef SLOT

void coll_torii_set_blocking(mca_coll_base_module_t* module) {
#define SET(name, parameters, arguments) module->coll_##name = name;
  COLL_TORII_OPERATIONS(SET)
#undef SET
}
