/* SPDX-License-Identifier: Apache-2.0
 * The requests of non-blocking and persistent operations, and the list from which they are moved. */
#pragma once

#include <pthread.h>

#include "plugins/openmpi/coll_torii.h"

typedef struct coll_torii_request_t {
  ompi_coll_base_nbc_request_t super; /* first: Open MPI writes the operands' op and types into it */
  coll_torii_module_t* module;        /* held: communicators may be freed before their requests are done */
  struct ompi_communicator_t* comm;   /* held by alltoallw only, whose release looks at it */
  coll_torii_operation_t operation;
  torii_request* request; /* NULL: nothing has to move */
  int64_t number;         /* of a persistent one among those of its communicator */
  struct coll_torii_request_t* next;
} coll_torii_request_t;

OBJ_CLASS_DECLARATION(coll_torii_request_t);

/* Held while a team of non-blocking or persistent operations is used, and while the list of active requests is changed;
 * never while a request is completed, and never while others are waited for. */
extern pthread_mutex_t coll_torii_lock;

coll_torii_request_t* coll_torii_make_request(coll_torii_module_t* module, struct ompi_communicator_t* comm,
                                              const coll_torii_operation_t* operation, bool persistent);
/* Gives back the operation's staging and all that the request holds. */
void coll_torii_drop_request(coll_torii_request_t* request);
/* Has the callback in opal_progress() move the request; under the lock. */
void coll_torii_add_active(coll_torii_request_t* request);
void coll_torii_stop_progress(void);

/* coll_torii_persistent.c: before the team goes. */
void coll_torii_forget_persistent(coll_torii_module_t* module);
