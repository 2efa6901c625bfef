/* SPDX-License-Identifier: Apache-2.0
 * The requests of non-blocking and persistent operations, and the list from which they are moved. */
#pragma once

#include "plugins/openmpi/coll_torii_module.h"

#include <pthread.h>

typedef struct coll_torii_request_t {
  ompi_coll_base_nbc_request_t super; /* first: Open MPI writes the operands' op and types into it */
  coll_torii_module_t* module;        /* held: communicators may be freed before their requests are done */
  struct ompi_communicator_t* comm;   /* held by alltoallw only, whose types need it when they are released */
  coll_torii_operation_t operation;
  torii_request* request; /* NULL: nothing has to move */
  int64_t number;         /* of a persistent request within its communicator */
  struct coll_torii_request_t* next;
} coll_torii_request_t;

OBJ_CLASS_DECLARATION(coll_torii_request_t);

/* Held while a team of non-blocking or persistent operations is used or the list of active requests changes. Never held
 * while a request is completed or the process waits for others. */
extern pthread_mutex_t coll_torii_lock;

coll_torii_request_t* coll_torii_make_request(coll_torii_module_t* module, struct ompi_communicator_t* comm,
                                              const coll_torii_operation_t* operation, bool persistent);
/* Returns the operation's staging and all that the request holds. */
void coll_torii_drop_request(coll_torii_request_t* request);
/* From now on the callback in opal_progress() moves the request. The caller holds the lock. */
void coll_torii_add_active(coll_torii_request_t* request);
void coll_torii_stop_progress(void);
