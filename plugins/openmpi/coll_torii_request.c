/* SPDX-License-Identifier: Apache-2.0
 * Requests and the callback that moves them. */
#include "plugins/openmpi/coll_torii_request.h"

#include <stdatomic.h>

#include "plugins/openmpi/coll_torii_report.h"
#include "plugins/openmpi/coll_torii_staging.h"

static void construct_request(coll_torii_request_t* request) {
  memset((char*)request + sizeof(request->super), 0, sizeof(*request) - sizeof(request->super));
}

OBJ_CLASS_INSTANCE(coll_torii_request_t, ompi_coll_base_nbc_request_t, construct_request, NULL);

pthread_mutex_t coll_torii_lock = PTHREAD_MUTEX_INITIALIZER;
static coll_torii_request_t* active;
static _Atomic int32_t active_count;
static bool is_registered; /* progress() at opal_progress() */

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
  /* Open MPI asks the communicator for its size when it releases the types of an alltoallw. */
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

/* Moves the active requests, and returns those that are done. */
static coll_torii_request_t* take_done(void) {
  coll_torii_request_t* done = NULL;
  for (coll_torii_request_t** place = &active; *place != NULL;) {
    coll_torii_request_t* const request = *place;
    int is_done = 0;
    const torii_status status = torii_test(&request->request, &is_done);
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

/* opal_progress() calls this from any thread, also inside torii_run(), whose idle function calls opal_progress(). */
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
  if (is_registered) (void)opal_progress_unregister(progress);
  is_registered = false;
}

void coll_torii_add_active(coll_torii_request_t* request) {
  if (!is_registered) is_registered = opal_progress_register(progress) == OPAL_SUCCESS;
  request->next = active;
  active = request;
  atomic_fetch_add_explicit(&active_count, 1, memory_order_relaxed);
}
