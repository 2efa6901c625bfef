/* SPDX-License-Identifier: Apache-2.0
 * The data of one communicator: its teams, its persistent operations and the slots of the component below. */
#pragma once

#include "plugins/openmpi/coll_torii_call.h"

/* ATTACHED: the team exists. FAILED: the members have agreed to have none. */
typedef enum { STATE_NEW, STATE_ATTACHED, STATE_FAILED } coll_torii_team_state_t;

/* The teams of a communicator. Each is made when it pays (coll_torii_delay.h). */
typedef enum {
  TEAM_BLOCKING,
  /* Non-blocking operations have a team of their own: Open MPI starts some from inside opal_progress(). Each rank may
   * then be at another blocking operation, or inside one. */
  TEAM_BACKGROUND,
  TEAM_PERSISTENT, /* its operations are prepared and freed together (coll_torii_offer_t) */
  TEAM_COUNT
} coll_torii_team_t;

struct coll_torii_request_t;

/* Torii wants operations freed in one order on all ranks; MPI lets each rank free them at any time. So a rank keeps a
 * freed operation. When ranks prepare another, they tell which ones they keep, and free those that all keep. */
#define COLL_TORII_OFFERS_MAX 31 /* how many freed operations a rank offers at a time */
typedef struct coll_torii_offer_t {
  int64_t count;
  int64_t numbers[COLL_TORII_OFFERS_MAX]; /* ascending */
} coll_torii_offer_t;

typedef struct coll_torii_module_t {
  mca_coll_base_module_t super;
  coll_torii_team_state_t states[TEAM_COUNT];
  torii_team* teams[TEAM_COUNT];
  int64_t blocking_use;               /* of the communicator before its team, in short calls; equal on all ranks */
  int64_t background_use;             /* the same for non-blocking operations */
  bool is_below;                      /* a blocking operation of the component below runs; it may call this component */
  coll_torii_user_t user;             /* of the blocking operation that runs */
  struct coll_torii_request_t* freed; /* persistent operations that other ranks may still hold, oldest first */
  coll_torii_offer_t* offers;         /* room for those of all members, with the team of persistent operations */
  int64_t prepared;                   /* persistent operations so far, hence the number of the next */
#define COLL_TORII_SAVED_ONE(name)                 \
  mca_coll_base_module_##name##_fn_t below_##name; \
  mca_coll_base_module_t* below_##name##_module;
#define COLL_TORII_SAVED(name, parameters, arguments) \
  COLL_TORII_SAVED_ONE(name) COLL_TORII_SAVED_ONE(i##name) COLL_TORII_SAVED_ONE(name##_init)
  COLL_TORII_OPERATIONS(COLL_TORII_SAVED)
#undef COLL_TORII_SAVED
#undef COLL_TORII_SAVED_ONE
} coll_torii_module_t;

OBJ_CLASS_DECLARATION(coll_torii_module_t);
