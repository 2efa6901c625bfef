/* SPDX-License-Identifier: Apache-2.0
 * The state of the component in this process: parameters, context and counts. */
#pragma once

#include "plugins/openmpi/coll_torii_openmpi.h"
#include "plugins/openmpi/coll_torii_operations.h"

#include <stdatomic.h>
#include <torii/torii.h>

typedef struct coll_torii_state_t {
  /* Open MPI writes the parameters (docs/openmpi.md, use). */
  bool enable;
  int priority;
  int verbose;
  int delay; /* short calls of a communicator before it gets a team */
  char* algorithm;
  char* determinism;
  char* topology;
  int stream;                                    /* of opal_output; negative: none yet */
  torii_context* context;                        /* of the ranks of MPI_COMM_WORLD; NULL on all of them or on none */
  _Atomic int64_t taken[FORM_COUNT][KIND_COUNT]; /* calls that torii ran; starts of persistent ones */
  _Atomic int64_t left[REASON_COUNT][FORM_COUNT][KIND_COUNT]; /* calls that the component below got */
  _Atomic int64_t teams;                                      /* made so far */
  _Atomic int64_t team_ns;                                    /* in making them, and waiting for other members */
  int64_t context_ns;                                         /* the same for the context */
} coll_torii_state_t;

extern coll_torii_state_t coll_torii_state;
