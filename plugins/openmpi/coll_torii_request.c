/* SPDX-License-Identifier: Apache-2.0
 * Requests, the callback that moves them, and the slots of non-blocking operations. */
#include "plugins/openmpi/coll_torii_request.h"

/* Up to here a background team's staging holds the plans for every root; see tune_table_background.json. */
#define ROOTED_RANKS_MAX 16

static void construct_request(coll_torii_request_t* request) {
  memset((char*)request + sizeof(request->super), 0, sizeof(*request) - sizeof(request->super));
}

OBJ_CLASS_INSTANCE(coll_torii_request_t, ompi_coll_base_nbc_request_t, construct_request, NULL);

pthread_mutex_t coll_torii_lock = PTHREAD_MUTEX_INITIALIZER;
static coll_torii_request_t* active;
static _Atomic int32_t active_count;

static int free_request(ompi_request_t** handle) {
  if (!REQUEST_COMPLETE(*handle)) return OMPI_ERR_REQUEST;
  coll_torii_drop_request((coll_torii_request_t*)*handle);
  *handle = MPI_REQUEST_NULL;
  return OMPI_SUCCESS;
}

coll_torii_request_t* coll_torii_make_request(coll_torii_module_t* module, struct ompi_communicator_t* comm,
                                              const coll_torii_operation_t* operation, bool persistent) {
  coll_torii_request_t* const request = OBJ_NEW(coll_torii_request_t);
  if (request == NULL) return NULL;
  request->operation = *operation;
  request->operation.call.user_data = &request->operation.user;
  request->module = module;
  OBJ_RETAIN(module);
  /* When the types of an alltoallw are let go of, Open MPI asks the communicator for its size. */
  if (operation->kind == KIND_alltoallw) {
    request->comm = comm;
    OBJ_RETAIN(comm);
  }
  ompi_request_t* const base = &request->super.super;
  OMPI_REQUEST_INIT(base, persistent);
  base->req_type = OMPI_REQUEST_COLL;
  if (!persistent) base->req_state = OMPI_REQUEST_ACTIVE;
  base->req_free = free_request;
  base->req_status.MPI_ERROR = OMPI_SUCCESS;
  base->req_mpi_object.comm = comm;
  return request;
}

void coll_torii_drop_request(coll_torii_request_t* request) {
  coll_torii_release(&request->operation);
  OMPI_REQUEST_FINI(&request->super.super);
  if (request->comm != NULL) OBJ_RELEASE(request->comm);
  if (request->module != NULL) OBJ_RELEASE(request->module);
  OBJ_RELEASE(request);
}

/* Moves what is active, and returns the requests that are done. */
static coll_torii_request_t* take_done(void) {
  coll_torii_request_t* done = NULL;
  for (coll_torii_request_t** place = &active; *place != NULL;) {
    coll_torii_request_t* const request = *place;
    int is_done = 0;
    const torii_status status = torii_test(request->request, &is_done);
    if (!is_done) {
      place = &request->next;
      continue;
    }
    if (status != TORII_OK) coll_torii_say(0, "an operation of a request: %s", torii_last_error());
    request->super.super.req_status.MPI_ERROR = coll_torii_error_of(status);
    *place = request->next;
    request->next = done;
    done = request;
  }
  return done;
}

/* Called by opal_progress(), from any thread, and from inside torii_run() by way of its idle function. */
static int progress(void) {
  if (atomic_load_explicit(&active_count, memory_order_relaxed) == 0 || pthread_mutex_trylock(&coll_torii_lock) != 0) {
    return 0;
  }
  coll_torii_request_t* done = take_done();
  pthread_mutex_unlock(&coll_torii_lock);
  int events = 0;
  while (done != NULL) {
    coll_torii_request_t* const request = done;
    ompi_request_t* const base = &request->super.super;
    done = request->next; /* before it is completed: its owner may then free or restart it */
    atomic_fetch_add_explicit(&active_count, -1, memory_order_relaxed);
    if (base->req_status.MPI_ERROR == OMPI_SUCCESS) coll_torii_store(&request->operation);
    if (!base->req_persistent) coll_torii_release(&request->operation);
    (void)ompi_request_complete(base, true);
    ++events;
  }
  return events;
}

void coll_torii_stop_progress(void) {
  if (mca_coll_torii_component.progress_registered) (void)opal_progress_unregister(progress);
  mca_coll_torii_component.progress_registered = false;
}

void coll_torii_add_active(coll_torii_request_t* request) {
  if (!mca_coll_torii_component.progress_registered) {
    mca_coll_torii_component.progress_registered = opal_progress_register(progress) == OPAL_SUCCESS;
  }
  request->next = active;
  active = request;
  atomic_fetch_add_explicit(&active_count, 1, memory_order_relaxed);
}

/* Open MPI gives communicators their numbers by iallreduce of one int by max or min. MPI_Comm_idup starts these from
 * inside opal_progress(), before or after another operation of the communicator as it happens on each rank, so torii,
 * which wants one order on all ranks, leaves every call that looks like them. */
static bool looks_internal(const coll_torii_operation_t* operation) {
  const torii_call* const call = &operation->call;
  return operation->kind == KIND_allreduce && call->count == 1 && (call->op == TORII_MAX || call->op == TORII_MIN) &&
         torii_type_bytes(call->type) == sizeof(int);
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

/* Starts what was described. False where it is left to the component below, on all ranks alike. A call that fails
 * leaves MPI_REQUEST_NULL in `handle`, as those of libnbc do. */
static bool start(coll_torii_operation_t* operation, coll_torii_answer_t answer, coll_torii_module_t* module,
                  struct ompi_communicator_t* comm, ompi_request_t** handle, int* status) {
  *status = OMPI_SUCCESS;
  *handle = MPI_REQUEST_NULL;
  if (answer == ANSWER_DONE) {
    *handle = &ompi_request_empty;
    coll_torii_release(operation);
    return true;
  }
  /* Before the first blocking operation there is no team: making one waits for others. */
  const bool has_plans = !operation->rooted || ompi_comm_size(comm) <= ROOTED_RANKS_MAX;
  torii_status started = TORII_UNSUPPORTED;
  if (answer == ANSWER_TAKE && module->states[TEAM_BACKGROUND] == STATE_ATTACHED && has_plans &&
      !looks_internal(operation)) {
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
    coll_torii_count_left(FORM_NON_BLOCKING, operation->kind);
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
    if (start(&operation, answer, module, comm, handle, &status)) return status;                               \
    return module->below_i##name(COLL_TORII_LIST arguments comm, handle, module->below_i##name##_module);      \
  }
COLL_TORII_OPERATIONS(SLOT)
#undef SLOT

void coll_torii_set_non_blocking(mca_coll_base_module_t* module) {
#define SET(name, parameters, arguments) module->coll_i##name = i##name;
  COLL_TORII_OPERATIONS(SET)
#undef SET
}
