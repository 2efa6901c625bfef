/* SPDX-License-Identifier: Apache-2.0
 * The slots of persistent operations (MPIX_*_init): prepared once, on all ranks together, then started in any order. */
#include <stdlib.h>

#include "plugins/openmpi/coll_torii_attach.h"
#include "plugins/openmpi/coll_torii_delay.h"
#include "plugins/openmpi/coll_torii_describe.h"
#include "plugins/openmpi/coll_torii_report.h"
#include "plugins/openmpi/coll_torii_request.h"
#include "plugins/openmpi/coll_torii_slots.h"
#include "plugins/openmpi/coll_torii_staging.h"

static bool offers(const coll_torii_offer_t* offer, int64_t number) {
  for (int64_t i = 0; i < offer->count; ++i) {
    if (offer->numbers[i] == number) return true;
  }
  return false;
}

static void free_first(coll_torii_request_t** place) {
  coll_torii_request_t* request = *place;
  *place = request->next;
  (void)torii_request_free(&request->request);
  OBJ_RELEASE(request);
}

/* Frees the operations that all ranks have freed. False if the exchange failed. */
static bool free_together(coll_torii_module_t* module, struct ompi_communicator_t* comm) {
  const int ranks = ompi_comm_size(comm);
  coll_torii_offer_t mine = {0};
  pthread_mutex_lock(&coll_torii_lock);
  for (const coll_torii_request_t* one = module->freed; one != NULL && mine.count < COLL_TORII_OFFERS_MAX;
       one = one->next) {
    mine.numbers[mine.count++] = one->number;
  }
  pthread_mutex_unlock(&coll_torii_lock);
  coll_torii_offer_t on_stack[module->offers == NULL ? ranks : 1];
  coll_torii_offer_t* const all = module->offers == NULL ? on_stack : module->offers;
  const bool exchanged = coll_torii_gather(module, comm, &mine, all, sizeof(mine));
  pthread_mutex_lock(&coll_torii_lock);
  for (coll_torii_request_t** place = &module->freed; exchanged && *place != NULL;) {
    bool all_offer = true;
    for (int rank = 0; rank < ranks && all_offer; ++rank) all_offer = offers(&all[rank], (*place)->number);
    if (all_offer) {
      free_first(place);
    } else {
      place = &(*place)->next;
    }
  }
  pthread_mutex_unlock(&coll_torii_lock);
  return exchanged;
}

void coll_torii_forget_persistent(coll_torii_module_t* module) {
  while (module->freed != NULL) free_first(&module->freed);
}

static void hold_one(void* object, bool holds) {
  opal_object_t* counted = object;
  if (holds) {
    OBJ_RETAIN(counted);
  } else {
    OBJ_RELEASE(counted);
  }
}

static void hold_type(ompi_datatype_t* type, bool holds) {
  if (!ompi_datatype_is_predefined(type)) hold_one(type, holds);
}

/* Programs may free types and operations as soon as the operation is prepared, so the request holds them. */
static void hold(const coll_torii_operation_t* operation, bool holds) {
  const coll_torii_move_t* const moves[] = {&operation->load, &operation->store};
  for (int i = 0; i < 2; ++i) {
    if (moves[i]->form == MOVE_NOTHING) continue;
    const int types = moves[i]->types == NULL ? 1 : moves[i]->blocks;
    for (int which = 0; which < types; ++which) {
      hold_type(moves[i]->types == NULL ? moves[i]->type : moves[i]->types[which], holds);
    }
  }
  const coll_torii_user_t* const user = &operation->user;
  if (user->op != NULL && !ompi_op_is_intrinsic(user->op)) hold_one(user->op, holds);
  if (user->type != NULL) hold_type(user->type, holds);
}

static int free_persistent(ompi_request_t** handle) {
  coll_torii_request_t* const request = (coll_torii_request_t*)*handle;
  if (!REQUEST_COMPLETE(*handle)) return OMPI_ERR_REQUEST;
  *handle = MPI_REQUEST_NULL;
  hold(&request->operation, false);
  if (request->request == NULL) {
    coll_torii_drop_request(request);
    return OMPI_SUCCESS;
  }
  coll_torii_module_t* module = request->module;
  request->module = NULL;
  coll_torii_release(&request->operation);
  OMPI_REQUEST_FINI(&request->super.super);
  if (request->comm != NULL) OBJ_RELEASE(request->comm);
  pthread_mutex_lock(&coll_torii_lock);
  coll_torii_request_t** place = &module->freed;
  while (*place != NULL && (*place)->number < request->number) place = &(*place)->next;
  request->next = *place;
  *place = request;
  pthread_mutex_unlock(&coll_torii_lock);
  OBJ_RELEASE(module); /* the last one destroys the team */
  return OMPI_SUCCESS;
}

static int start_persistent(size_t count, ompi_request_t** requests) {
  for (size_t i = 0; i < count; ++i) {
    coll_torii_request_t* const request = (coll_torii_request_t*)requests[i];
    ompi_request_t* const base = requests[i];
    base->req_complete = REQUEST_PENDING;
    base->req_state = OMPI_REQUEST_ACTIVE;
    base->req_status.MPI_ERROR = OMPI_SUCCESS;
    if (request->request == NULL) {
      (void)ompi_request_complete(base, true);
      continue;
    }
    coll_torii_load(&request->operation);
    pthread_mutex_lock(&coll_torii_lock);
    const torii_status status = torii_restart(request->request);
    if (status == TORII_OK) coll_torii_add_active(request);
    pthread_mutex_unlock(&coll_torii_lock);
    if (status != TORII_OK) {
      coll_torii_say(0, "a persistent operation: %s", torii_last_error());
      base->req_complete = REQUEST_COMPLETED;
      base->req_state = OMPI_REQUEST_INACTIVE;
      return coll_torii_error_of(status);
    }
    coll_torii_count_taken(FORM_PERSISTENT, request->operation.kind);
  }
  return OMPI_SUCCESS;
}

/* How many members have prepared the operation; -1 if the exchange failed. A byte per rank is on the stack: memory that
 * one rank alone does not get would let the others wait. */
static int count_prepared(coll_torii_module_t* module, struct ompi_communicator_t* comm, bool prepared) {
  const int ranks = ompi_comm_size(comm);
  char all[ranks];
  const char mine = prepared;
  int count = coll_torii_gather(module, comm, &mine, all, 1) ? 0 : -1;
  for (int rank = 0; rank < ranks && count >= 0; ++rank) count += all[rank];
  return count;
}

static torii_status prepare_on(torii_team* team, coll_torii_request_t* request) {
  pthread_mutex_lock(&coll_torii_lock);
  const torii_status status = torii_prepare(team, &request->operation.call, &request->request);
  pthread_mutex_unlock(&coll_torii_lock);
  return status;
}

/* Prepares the operation on all ranks or on none. True if it is prepared. `request` is NULL if this rank has no memory
 * for it; the others then learn of that here. */
static bool prepare(coll_torii_request_t* request, coll_torii_module_t* module, struct ompi_communicator_t* comm) {
  if (coll_torii_pays_in_background(module)) (void)coll_torii_attach(module, comm, TEAM_BACKGROUND);
  torii_team* const team = coll_torii_attach(module, comm, TEAM_PERSISTENT);
  if (team == NULL || !free_together(module, comm)) return false;
  if (request != NULL) coll_torii_acquire(&request->operation);
  const bool prepared =
      request != NULL && request->operation.status == OMPI_SUCCESS && prepare_on(team, request) == TORII_OK;
  const int count = count_prepared(module, comm, prepared);
  if (count == ompi_comm_size(comm)) {
    request->number = module->prepared++;
    return true;
  }
  coll_torii_say(1, "communicator %u: a persistent operation is left to others: %s", comm->c_contextid,
                 prepared          ? "another rank could not prepare it"
                 : request == NULL ? "no memory for it"
                                   : torii_last_error());
  /* If only some ranks have prepared it, they no longer agree on channels. */
  if (count != 0) module->states[TEAM_PERSISTENT] = STATE_FAILED;
  if (prepared) (void)torii_request_free(&request->request);
  if (request != NULL) request->request = NULL;
  return false;
}

/* Why an operation that torii would take is left. */
static coll_torii_reason_t reason_of(const coll_torii_module_t* module) {
  return module->states[TEAM_PERSISTENT] == STATE_ATTACHED ? REASON_UNSERVED : REASON_NO_TEAM;
}

/* False if the operation is left to the component below; all ranks then leave it. A call that fails leaves
 * MPI_REQUEST_NULL in `handle`. */
static bool init(coll_torii_operation_t* operation, coll_torii_answer_t answer, coll_torii_module_t* module,
                 struct ompi_communicator_t* comm, ompi_request_t** handle, int* status) {
  *status = OMPI_SUCCESS;
  *handle = MPI_REQUEST_NULL;
  coll_torii_request_t* const request =
      answer == ANSWER_LEAVE ? NULL : coll_torii_make_request(module, comm, operation, true);
  if (request == NULL) {
    if (answer == ANSWER_TAKE) (void)prepare(NULL, module, comm);
    const coll_torii_reason_t reason = answer == ANSWER_LEAVE ? REASON_REDUCTION : reason_of(module);
    if (answer == ANSWER_TAKE) answer = ANSWER_LEAVE;
    coll_torii_release(operation);
    coll_torii_count_left(reason, FORM_PERSISTENT, operation->kind);
    *status = OMPI_ERR_OUT_OF_RESOURCE;
    return answer != ANSWER_LEAVE;
  }
  coll_torii_keep_arrays(&request->operation);
  if (answer == ANSWER_TAKE && !prepare(request, module, comm)) {
    coll_torii_drop_request(request);
    coll_torii_count_left(reason_of(module), FORM_PERSISTENT, operation->kind);
    return false;
  }
  hold(&request->operation, true);
  request->super.super.req_start = start_persistent;
  request->super.super.req_free = free_persistent;
  *handle = &request->super.super;
  return true;
}

#define SLOT(name, parameters, arguments)                                                                       \
  static int name##_init(COLL_TORII_LIST parameters struct ompi_communicator_t* comm, struct ompi_info_t* info, \
                         ompi_request_t** handle, mca_coll_base_module_t* base) {                               \
    coll_torii_module_t* const module = (coll_torii_module_t*)base;                                             \
    coll_torii_operation_t operation;                                                                           \
    int status;                                                                                                 \
    coll_torii_begin(&operation, KIND_##name);                                                                  \
    const coll_torii_answer_t answer = coll_torii_describe_##name(&operation, COLL_TORII_LIST arguments comm);  \
    if (init(&operation, answer, module, comm, handle, &status)) return status;                                 \
    return module->below_##name##_init(COLL_TORII_LIST arguments comm, info, handle,                            \
                                       module->below_##name##_init_module);                                     \
  }
COLL_TORII_OPERATIONS(SLOT)
#undef SLOT

void coll_torii_set_persistent(mca_coll_base_module_t* module) {
#define SET(name, parameters, arguments) module->coll_##name##_init = name##_init;
  COLL_TORII_OPERATIONS(SET)
#undef SET
}
