/* SPDX-License-Identifier: Apache-2.0
 * The slots of non-blocking operations, the requests that they return, and the callback that moves them. */
#include <pthread.h>

#include "plugins/openmpi/coll_torii.h"

/* Up to here a background team's staging holds the plans for every root; see background_table. */
#define ROOTED_RANKS_MAX 16

typedef struct coll_torii_request_t {
  ompi_coll_base_nbc_request_t super; /* first: Open MPI writes the operands' op and types into it */
  coll_torii_module_t* module;
  coll_torii_operation_t operation;
  coll_torii_user_t user;
  torii_request* request;
  struct coll_torii_request_t* next;
} coll_torii_request_t;

static void construct_request(coll_torii_request_t* request) {
  request->module = NULL;
  request->request = NULL;
  request->next = NULL;
}

OBJ_CLASS_INSTANCE(coll_torii_request_t, ompi_coll_base_nbc_request_t, construct_request, NULL);

/* Held while a background team is used, and while the list is changed; never while a request is completed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static coll_torii_request_t* active;
static _Atomic int32_t active_count;

/* Communicators may be freed before their requests are done: the request holds the module. */
static int free_request(ompi_request_t** handle) {
  coll_torii_request_t* request = (coll_torii_request_t*)*handle;
  if (!REQUEST_COMPLETE(*handle)) return OMPI_ERR_REQUEST;
  OMPI_REQUEST_FINI(&request->super.super);
  OBJ_RELEASE(request->module);
  OBJ_RELEASE(request);
  *handle = MPI_REQUEST_NULL;
  return OMPI_SUCCESS;
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
    if (status != TORII_OK) coll_torii_say(0, "a non-blocking operation: %s", torii_last_error());
    request->super.super.req_status.MPI_ERROR = coll_torii_error_of(status);
    if (status != TORII_OK) request->operation.finish = FINISH_NOTHING;
    *place = request->next;
    request->next = done;
    done = request;
  }
  return done;
}

/* Called by opal_progress(), from any thread, and from inside torii_run() by way of its idle function. */
static int progress(void) {
  if (atomic_load_explicit(&active_count, memory_order_relaxed) == 0 || pthread_mutex_trylock(&lock) != 0) return 0;
  coll_torii_request_t* done = take_done();
  pthread_mutex_unlock(&lock);
  int events = 0;
  while (done != NULL) {
    coll_torii_request_t* const request = done;
    done = request->next; /* before it is completed: its owner may then free it */
    atomic_fetch_add_explicit(&active_count, -1, memory_order_relaxed);
    coll_torii_finish(&request->operation);
    (void)ompi_request_complete(&request->super.super, true);
    ++events;
  }
  return events;
}

void coll_torii_stop_progress(void) {
  if (mca_coll_torii_component.progress_registered) (void)opal_progress_unregister(progress);
  mca_coll_torii_component.progress_registered = false;
}

/* NULL where torii does not take non-blocking operations of this communicator: no blocking one has set it up yet. */
static coll_torii_request_t* begin(coll_torii_module_t* module, struct ompi_communicator_t* comm, bool rooted) {
  if (module->state != STATE_ATTACHED || (rooted && ompi_comm_size(comm) > ROOTED_RANKS_MAX)) return NULL;
  coll_torii_request_t* const request = OBJ_NEW(coll_torii_request_t);
  if (request == NULL) return NULL;
  memset(&request->operation, 0, sizeof(request->operation));
  request->operation.call.size = sizeof(request->operation.call);
  request->operation.user = &request->user;
  request->module = module;
  OBJ_RETAIN(module);
  OMPI_REQUEST_INIT(&request->super.super, false);
  request->super.super.req_type = OMPI_REQUEST_COLL;
  request->super.super.req_state = OMPI_REQUEST_ACTIVE;
  request->super.super.req_free = free_request;
  request->super.super.req_status.MPI_ERROR = OMPI_SUCCESS;
  request->super.super.req_mpi_object.comm = comm;
  return request;
}

static void drop(coll_torii_request_t* request) {
  request->operation.finish = FINISH_NOTHING;
  coll_torii_finish(&request->operation);
  OMPI_REQUEST_FINI(&request->super.super);
  OBJ_RELEASE(request->module);
  OBJ_RELEASE(request);
}

static void add_active(coll_torii_request_t* request) {
  if (!mca_coll_torii_component.progress_registered) {
    mca_coll_torii_component.progress_registered = opal_progress_register(progress) == OPAL_SUCCESS;
  }
  request->next = active;
  active = request;
  atomic_fetch_add_explicit(&active_count, 1, memory_order_relaxed);
}

/* Starts what was prepared, or tells that torii leaves it; `request` is then gone. */
static bool start(coll_torii_request_t* request, coll_torii_answer_t answer, ompi_request_t** handle, int* status) {
  coll_torii_operation_t* const operation = &request->operation;
  if (answer == ANSWER_LEAVE || operation->ordered) {
    drop(request);
    return false;
  }
  *status = OMPI_SUCCESS;
  if (answer == ANSWER_DONE) {
    *handle = &request->super.super;
    (void)ompi_request_complete(*handle, true);
    return true;
  }
  torii_status started = TORII_NO_RESOURCE;
  pthread_mutex_lock(&lock);
  if (operation->status == OMPI_SUCCESS) {
    started = torii_start(request->module->background, &operation->call, &request->request);
    if (started == TORII_OK) add_active(request);
  } else {
    (void)torii_team_abort(request->module->background, "a rank has no memory for staging");
  }
  pthread_mutex_unlock(&lock);
  if (started == TORII_OK) {
    atomic_fetch_add_explicit(&mca_coll_torii_component.taken[1][operation->kind], 1, memory_order_relaxed);
    *handle = &request->super.super;
    return true;
  }
  if (started != TORII_UNSUPPORTED) coll_torii_say(0, "a non-blocking operation: %s", torii_last_error());
  drop(request);
  *status = coll_torii_error_of(started);
  return started != TORII_UNSUPPORTED;
}

static void count_left(coll_torii_kind_t kind) {
  atomic_fetch_add_explicit(&mca_coll_torii_component.left[1][kind], 1, memory_order_relaxed);
}

static int ibarrier(struct ompi_communicator_t* comm, ompi_request_t** handle, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_request_t* const own = begin(module, comm, false);
  int status;
  if (own != NULL && start(own, coll_torii_prepare_barrier(&own->operation), handle, &status)) return status;
  count_left(KIND_BARRIER);
  return module->below_ibarrier(comm, handle, module->below_ibarrier_module);
}

static int ibcast(void* buffer, int count, ompi_datatype_t* type, int root, struct ompi_communicator_t* comm,
                  ompi_request_t** handle, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_request_t* const own = begin(module, comm, true);
  int status;
  if (own != NULL &&
      start(own, coll_torii_prepare_bcast(&own->operation, buffer, count, type, root, ompi_comm_rank(comm)), handle,
            &status)) {
    return status;
  }
  count_left(KIND_BCAST);
  return module->below_ibcast(buffer, count, type, root, comm, handle, module->below_ibcast_module);
}

static int iallgather(const void* input, int input_count, ompi_datatype_t* input_type, void* result, int result_count,
                      ompi_datatype_t* result_type, struct ompi_communicator_t* comm, ompi_request_t** handle,
                      mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_request_t* const own = begin(module, comm, false);
  int status;
  if (own != NULL && start(own,
                           coll_torii_prepare_allgather(&own->operation, input, input_count, input_type, result,
                                                        result_count, result_type, comm),
                           handle, &status)) {
    return status;
  }
  count_left(KIND_ALLGATHER);
  return module->below_iallgather(input, input_count, input_type, result, result_count, result_type, comm, handle,
                                  module->below_iallgather_module);
}

static int iallgatherv(const void* input, int input_count, ompi_datatype_t* input_type, void* result, const int* counts,
                       const int* places, ompi_datatype_t* result_type, struct ompi_communicator_t* comm,
                       ompi_request_t** handle, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_request_t* const own = begin(module, comm, false);
  if (own != NULL) {
    const coll_torii_answer_t answer = coll_torii_prepare_allgatherv(&own->operation, input, input_count, input_type,
                                                                     result, counts, places, result_type, comm);
    coll_torii_keep_blocks(&own->operation);
    int status;
    if (start(own, answer, handle, &status)) return status;
  }
  count_left(KIND_ALLGATHERV);
  return module->below_iallgatherv(input, input_count, input_type, result, counts, places, result_type, comm, handle,
                                   module->below_iallgatherv_module);
}

/* Open MPI gives communicators their numbers by iallreduce of one int by max or min. MPI_Comm_idup starts these from
 * inside opal_progress(), before or after another operation of the communicator as it happens on each rank, so torii,
 * which wants one order on all ranks, leaves every call that looks like them. */
static bool looks_internal(int count, const ompi_datatype_t* type, const ompi_op_t* op) {
  return count == 1 && type->super.size == sizeof(int) && (op->op_type == OMPI_OP_MAX || op->op_type == OMPI_OP_MIN);
}

static int iallreduce(const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op,
                      struct ompi_communicator_t* comm, ompi_request_t** handle, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_request_t* const own = looks_internal(count, type, op) ? NULL : begin(module, comm, false);
  int status;
  if (own != NULL &&
      start(own, coll_torii_prepare_allreduce(&own->operation, input, result, count, type, op), handle, &status)) {
    return status;
  }
  count_left(KIND_ALLREDUCE);
  return module->below_iallreduce(input, result, count, type, op, comm, handle, module->below_iallreduce_module);
}

static int ireduce(const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op, int root,
                   struct ompi_communicator_t* comm, ompi_request_t** handle, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_request_t* const own = begin(module, comm, true);
  int status;
  if (own != NULL &&
      start(own, coll_torii_prepare_reduce(&own->operation, input, result, count, type, op, root, ompi_comm_rank(comm)),
            handle, &status)) {
    return status;
  }
  count_left(KIND_REDUCE);
  return module->below_ireduce(input, result, count, type, op, root, comm, handle, module->below_ireduce_module);
}

static int ireduce_scatter(const void* input, void* result, const int* counts, ompi_datatype_t* type, ompi_op_t* op,
                           struct ompi_communicator_t* comm, ompi_request_t** handle, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_request_t* const own = begin(module, comm, false);
  int status;
  if (own != NULL &&
      start(own,
            coll_torii_prepare_reduce_scatter(&own->operation, input, result, counts, type, op, ompi_comm_size(comm)),
            handle, &status)) {
    return status;
  }
  count_left(KIND_REDUCE_SCATTER);
  return module->below_ireduce_scatter(input, result, counts, type, op, comm, handle,
                                       module->below_ireduce_scatter_module);
}

static int ireduce_scatter_block(const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op,
                                 struct ompi_communicator_t* comm, ompi_request_t** handle,
                                 mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_request_t* const own = begin(module, comm, false);
  int status;
  if (own != NULL && start(own,
                           coll_torii_prepare_reduce_scatter_block(&own->operation, input, result, count, type, op,
                                                                   ompi_comm_size(comm)),
                           handle, &status)) {
    return status;
  }
  count_left(KIND_REDUCE_SCATTER_BLOCK);
  return module->below_ireduce_scatter_block(input, result, count, type, op, comm, handle,
                                             module->below_ireduce_scatter_block_module);
}

void coll_torii_set_non_blocking(mca_coll_base_module_t* module) {
#define SET(name) module->coll_i##name = i##name;
  COLL_TORII_OPERATIONS(SET)
#undef SET
}
