/* SPDX-License-Identifier: Apache-2.0
 * The slots of blocking operations. A call that torii does not take goes to the saved slot. */
#include "plugins/openmpi/coll_torii_attach.h"
#include "plugins/openmpi/coll_torii_delay.h"
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

/* The team for a call that torii can take; NULL if the call is left. */
static torii_team* team_for(coll_torii_module_t* module, struct ompi_communicator_t* comm, int64_t use) {
  if (coll_torii_pays_in_background(module)) (void)coll_torii_attach(module, comm, TEAM_BACKGROUND);
  return coll_torii_is_early(module, use) ? NULL : coll_torii_attach(module, comm, TEAM_BLOCKING);
}

static coll_torii_reason_t reason_of(coll_torii_answer_t answer, const coll_torii_module_t* module) {
  if (answer == ANSWER_LEAVE) return REASON_REDUCTION;
  if (module->states[TEAM_BLOCKING] == STATE_NEW) return REASON_BEFORE_TEAM;
  return module->states[TEAM_BLOCKING] == STATE_FAILED ? REASON_NO_TEAM : REASON_UNSERVED;
}

/* Whether a call goes below whatever it is, so that nobody need describe it: it is early, there is no team, or the
 * component below runs another one by it, or sets up a team. Those are not counted. An empty call is looked at, since
 * it must wait for nobody. */
static inline bool goes_below(coll_torii_module_t* module, coll_torii_kind_t kind, int64_t use) {
  if (use == 0) return false;
  if (module->is_below) return true;
  if (coll_torii_pays_in_background(module)) return false;
  if (module->states[TEAM_BLOCKING] == STATE_FAILED) {
    coll_torii_count_left(REASON_NO_TEAM, FORM_BLOCKING, kind);
    return true;
  }
  if (!coll_torii_is_early(module, use)) return false;
  coll_torii_count_left(REASON_BEFORE_TEAM, FORM_BLOCKING, kind);
  return true;
}

/* Runs a described call. False if the call is left to the component below; all ranks then leave it. */
static bool run(coll_torii_operation_t* operation, coll_torii_answer_t answer, coll_torii_module_t* module,
                struct ompi_communicator_t* comm, int64_t use, int* status) {
  *status = OMPI_SUCCESS;
  torii_status ended = answer == ANSWER_DONE ? TORII_OK : TORII_UNSUPPORTED;
  torii_team* const team = answer == ANSWER_TAKE && !module->is_below ? team_for(module, comm, use) : NULL;
  if (team != NULL) {
    module->user = operation->user;
    operation->call.user_data = &module->user;
    ended = coll_torii_is_direct(operation) ? torii_run(team, &operation->call) : run_staged(operation, team);
  }
  if (!coll_torii_is_direct(operation)) coll_torii_release(operation);
  if (answer == ANSWER_DONE) return true;
  if (ended == TORII_UNSUPPORTED) {
    if (!module->is_below) coll_torii_count_left(reason_of(answer, module), FORM_BLOCKING, operation->kind);
    return false;
  }
  if (ended != TORII_OK) coll_torii_say(0, "communicator %u: %s", comm->c_contextid, torii_last_error());
  *status = coll_torii_error_of(ended);
  coll_torii_count_taken(FORM_BLOCKING, operation->kind);
  return true;
}

/* `taken_NAME` describes a call and runs it, `early_NAME` is for calls without a team, and `NAME`, the slot, knows
 * which is right. They are apart, so that a call that goes below at once has no description to make room for, and no
 * registers to save for it, and one with a team does not pay for that. What a call counts does not matter once there is
 * one. */
#define BELOW(name, arguments)                                                                  \
  const bool was_below = coll_torii_enter_below(module);                                        \
  status = module->below_##name(COLL_TORII_LIST arguments comm, module->below_##name##_module); \
  coll_torii_leave_below(module, was_below);                                                    \
  return status;
#define SLOT(name, parameters, arguments)                                                                           \
  __attribute__((noinline)) static int taken_##name(COLL_TORII_LIST parameters struct ompi_communicator_t* comm,    \
                                                    mca_coll_base_module_t* base) {                                 \
    coll_torii_module_t* const module = (coll_torii_module_t*)base;                                                 \
    coll_torii_operation_t operation;                                                                               \
    int status;                                                                                                     \
    coll_torii_begin(&operation, KIND_##name);                                                                      \
    const coll_torii_answer_t answer = coll_torii_describe_##name(&operation, COLL_TORII_LIST arguments comm);      \
    if (run(&operation, answer, module, comm,                                                                       \
            module->states[TEAM_BLOCKING] == STATE_ATTACHED ? 0 : COLL_TORII_USE_##name, &status))                  \
      return status;                                                                                                \
    BELOW(name, arguments)                                                                                          \
  }                                                                                                                 \
  __attribute__((noinline)) static int early_##name(COLL_TORII_LIST parameters struct ompi_communicator_t* comm,    \
                                                    mca_coll_base_module_t* base) {                                 \
    coll_torii_module_t* const module = (coll_torii_module_t*)base;                                                 \
    int status;                                                                                                     \
    if (!goes_below(module, KIND_##name, COLL_TORII_USE_##name))                                                    \
      return taken_##name(COLL_TORII_LIST arguments comm, base);                                                    \
    BELOW(name, arguments)                                                                                          \
  }                                                                                                                 \
  static int name(COLL_TORII_LIST parameters struct ompi_communicator_t* comm, mca_coll_base_module_t* base) {      \
    const coll_torii_module_t* const module = (const coll_torii_module_t*)base;                                     \
    if (module->states[TEAM_BLOCKING] == STATE_ATTACHED) return taken_##name(COLL_TORII_LIST arguments comm, base); \
    return early_##name(COLL_TORII_LIST arguments comm, base);                                                      \
  }
COLL_TORII_OPERATIONS(SLOT)
#undef SLOT
#undef BELOW

void coll_torii_set_blocking(mca_coll_base_module_t* module) {
#define SET(name, parameters, arguments) module->coll_##name = name;
  COLL_TORII_OPERATIONS(SET)
#undef SET
}
