/* SPDX-License-Identifier: Apache-2.0
 * What the files of the Open MPI component share: module, teams, operations on their way. C over torii's C ABI. */
#pragma once

#include <ompi_config.h>

#if OMPI_MAJOR_VERSION != 4 || OMPI_MINOR_VERSION != 1
#error "coll/torii is written for Open MPI 4.1; docs/openmpi.md says what other series need"
#endif

#include <ompi/communicator/communicator.h>
#include <ompi/constants.h>
#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/coll/base/base.h>
#include <ompi/mca/coll/base/coll_base_util.h>
#include <ompi/mca/coll/coll.h>
#include <ompi/op/op.h>
#include <ompi/request/request.h>
#include <opal/runtime/opal_progress.h>
#include <opal/threads/thread_usage.h>
#include <opal/util/output.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <torii/torii.h>

#include "plugins/openmpi/coll_torii_operations.h"

typedef enum coll_torii_kind_t {
#define COLL_TORII_KIND(name, parameters, arguments) KIND_##name,
  COLL_TORII_OPERATIONS(COLL_TORII_KIND)
#undef COLL_TORII_KIND
      KIND_COUNT
} coll_torii_kind_t;

typedef enum { FORM_BLOCKING, FORM_NON_BLOCKING, FORM_PERSISTENT, FORM_COUNT } coll_torii_form_t;

typedef struct coll_torii_component_t {
  mca_coll_base_component_2_0_0_t super;
  bool enable;
  int priority;
  int verbose;
  char* algorithm;
  char* determinism;
  char* topology;
  int stream;                                    /* of opal_output */
  torii_context* context;                        /* of the ranks of MPI_COMM_WORLD; NULL: none, on all of them */
  bool progress_registered;                      /* the callback that moves non-blocking operations */
  _Atomic int64_t taken[FORM_COUNT][KIND_COUNT]; /* calls that torii ran; starts of persistent ones */
  _Atomic int64_t left[FORM_COUNT][KIND_COUNT];  /* calls that the component below got */
} coll_torii_component_t;

OMPI_MODULE_DECLSPEC extern coll_torii_component_t mca_coll_torii_component;

/* What a torii user function needs to run an operation of MPI. */
typedef struct coll_torii_user_t {
  ompi_op_t* op;
  ompi_datatype_t* type;
} coll_torii_user_t;

/* BUSY: being set up, by the collectives of the component below, which may come back here. ATTACHED: teams are there.
 * FAILED: the members have agreed that there will be none. */
typedef enum { STATE_NEW, STATE_BUSY, STATE_ATTACHED, STATE_FAILED } coll_torii_state_t;

/* The teams of a communicator. The first two are made with its first blocking or persistent operation, the others when
 * they are first needed. */
typedef enum {
  TEAM_BLOCKING,
  /* Non-blocking operations have a team of their own: Open MPI starts some from inside opal_progress(), at other places
   * among the blocking ones on every rank, and while this process may be inside a blocking one. */
  TEAM_BACKGROUND,
  TEAM_ORDERED,    /* of blocking operations that do not commute: it combines in the order of ranks */
  TEAM_PERSISTENT, /* persistent operations hold staging as long as they live */
  TEAM_COUNT
} coll_torii_team_t;

struct coll_torii_request_t;

typedef struct coll_torii_module_t {
  mca_coll_base_module_t super;
  coll_torii_state_t states[TEAM_COUNT]; /* the first two in step */
  torii_team* teams[TEAM_COUNT];
  coll_torii_user_t user;             /* of the one blocking operation that may run */
  struct coll_torii_request_t* freed; /* persistent operations that other ranks may still hold, oldest first */
  int64_t prepared;                   /* persistent operations so far: the number of the next */
  int64_t alive;                      /* those that torii holds */
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

/* Whether a call is torii's. All ranks of the communicator come to the same answer: it follows only from what MPI
 * guarantees to be equal on them (docs/openmpi.md, the rule). */
typedef enum {
  ANSWER_TAKE,
  ANSWER_LEAVE, /* to the component below */
  /* Nothing has to move, and the call must wait for nobody: MPI's layer returns early for a count of 0 but not for a
   * type without bytes, so ranks may differ in coming here. */
  ANSWER_DONE
} coll_torii_answer_t;

/* Memory that stands in for a buffer of the caller; of the arena, so that peers reach it in place. */
typedef struct coll_torii_staging_t {
  void* memory; /* NULL: none */
  size_t bytes; /* of the memory, at least what was asked for */
} coll_torii_staging_t;

/* How elements of the caller's memory correspond to bytes of staging. */
typedef enum {
  MOVE_NOTHING,
  MOVE_PACKED,   /* `count` elements: one packed stream */
  MOVE_BLOCKS,   /* a packed stream per block */
  MOVE_ELEMENTS, /* whole elements side by side, holes not included */
  MOVE_PARTS     /* `count` elements, which torii itself moves part by part: no staging */
} coll_torii_move_form_t;

typedef struct coll_torii_move_t {
  coll_torii_move_form_t form;
  void* memory; /* the caller's */
  size_t count;
  ompi_datatype_t* type;
  size_t offset; /* MOVE_PACKED: where the stream begins in staging */
  /* MOVE_BLOCKS: `blocks` of them, each with a count, a place in the caller's memory and one in staging. */
  int blocks;
  const int* counts;
  const int* places;             /* in elements; in bytes where each block has a type of its own */
  ompi_datatype_t* const* types; /* NULL: all are of `type` */
  const size_t* offsets;
} coll_torii_move_t;

/* All that forms without blocks have, field by field: a literal that is copied to its place is written in words
 * and read in longer pieces, which processors wait for. */
static inline void coll_torii_set_move(coll_torii_move_t* move, coll_torii_move_form_t form, const void* memory,
                                       size_t count, ompi_datatype_t* type, size_t offset) {
  move->form = form;
  move->memory = (void*)memory;
  move->count = count;
  move->type = type;
  move->offset = offset;
  move->types = NULL;
}

/* What torii's functions of a vector that it moves part by part work on. */
typedef struct coll_torii_access_t coll_torii_access_t;

/* One call of MPI as torii runs it. coll_torii_describe_* say what has to be done, without doing anything; acquire()
 * takes the staging; then load(), torii's operation and store(), once or, where it is persistent, many times; release()
 * gives the staging back. */
typedef struct coll_torii_operation_t {
  coll_torii_kind_t kind;
  bool rooted;
  bool ordered; /* does not commute */
  int status;   /* OMPI_SUCCESS, or why the operation could not be made on this rank */
  torii_call call;
  coll_torii_user_t user;
  size_t input_bytes; /* of the staging that stands in for the caller's input; 0: none */
  size_t result_bytes;
  bool input_in_result; /* in place: the input stands in the result, `own_offset` behind its beginning */
  bool result_in_input;
  bool loads_result; /* `load` goes to the staged result */
  size_t own_offset;
  size_t* lengths;             /* what the call gives torii as counts and displacements */
  void* kept;                  /* copies of the arrays of the moves */
  coll_torii_access_t* access; /* of a vector that is moved by parts: from acquire() to release() */
  coll_torii_staging_t input;
  coll_torii_staging_t result;
  /* Up to here coll_torii_begin() clears all, and of the moves their forms: short calls feel it. */
  coll_torii_move_t load;  /* before each run */
  coll_torii_move_t store; /* after it; MOVE_PARTS: during it, and a root's the other way */
} coll_torii_operation_t;

static inline void coll_torii_begin(coll_torii_operation_t* operation, coll_torii_kind_t kind) {
  memset(operation, 0, offsetof(coll_torii_operation_t, load));
  operation->kind = kind;
  operation->call.size = sizeof(operation->call);
  operation->load.form = MOVE_NOTHING;
  operation->store.form = MOVE_NOTHING;
}

/* Nothing to acquire, load, store or release: the call's buffers are the caller's. */
static inline bool coll_torii_is_direct(const coll_torii_operation_t* operation) {
  return operation->status == OMPI_SUCCESS && operation->input_bytes == 0 && operation->result_bytes == 0 &&
         operation->lengths == NULL && !operation->input_in_result && !operation->result_in_input &&
         operation->store.form != MOVE_PARTS;
}

/* coll_torii_attach.c */
int coll_torii_make_context(struct ompi_communicator_t* world, coll_torii_module_t* module);
/* Makes the team where the members can have it, with exchanges among all of them: at a blocking operation or when a
 * persistent one is made, on all ranks alike. NULL where there is none. */
torii_team* coll_torii_attach(coll_torii_module_t* module, struct ompi_communicator_t* comm, coll_torii_team_t kind);
void coll_torii_detach(coll_torii_module_t* module);
/* Whether the peers have this component, with the same version and parameters. */
bool coll_torii_peers_agree(struct ompi_communicator_t* comm);
void coll_torii_announce(void);
/* Gathers over the component below. */
bool coll_torii_gather(coll_torii_module_t* module, struct ompi_communicator_t* comm, const void* mine, void* all,
                       size_t bytes);

/* coll_torii_reduction.c: sets type, op, user function and whether the operation is ordered. False: torii cannot. */
bool coll_torii_map_reduction(coll_torii_operation_t* operation, ompi_op_t* op, ompi_datatype_t* type);

/* coll_torii_staging.c */
bool coll_torii_is_empty(int count, const ompi_datatype_t* type);
/* Whether elements of the type lie one behind the other without holes. */
bool coll_torii_is_plain(size_t count, const ompi_datatype_t* type);
/* The first byte of elements at `buffer`; never NULL, as MPI lets buffers without elements be. */
void* coll_torii_first_byte(const void* buffer, const ompi_datatype_t* type);
ptrdiff_t coll_torii_extent(const ompi_datatype_t* type);
void coll_torii_free_staging(void);
/* Copies the arrays of the moves: programs let go of them while an operation is in flight (mpi4py does), though MPI
 * forbids it. */
void coll_torii_keep_arrays(coll_torii_operation_t* operation);
/* On failure `status` tells; the operation can be released all the same. */
void coll_torii_acquire(coll_torii_operation_t* operation);
void coll_torii_load(coll_torii_operation_t* operation);
void coll_torii_store(coll_torii_operation_t* operation);
void coll_torii_release(coll_torii_operation_t* operation);

/* coll_torii_access.c */
bool coll_torii_moves_by_parts(size_t count, const ompi_datatype_t* type, int ranks);
/* For an operation whose store is MOVE_PARTS. False where there is no memory. */
bool coll_torii_begin_access(coll_torii_operation_t* operation);
void coll_torii_end_access(coll_torii_operation_t* operation);

/* coll_torii_describe_*.c: from the arguments of MPI to an operation that coll_torii_begin() has emptied. */
#define COLL_TORII_DESCRIBE(name, parameters, arguments)                            \
  coll_torii_answer_t coll_torii_describe_##name(coll_torii_operation_t* operation, \
                                                 COLL_TORII_LIST parameters struct ompi_communicator_t* comm);
COLL_TORII_OPERATIONS(COLL_TORII_DESCRIBE)
#undef COLL_TORII_DESCRIBE

/* coll_torii_blocking.c, coll_torii_request.c and coll_torii_persistent.c: the functions of the slots. */
void coll_torii_set_blocking(mca_coll_base_module_t* module);
void coll_torii_set_non_blocking(mca_coll_base_module_t* module);
void coll_torii_set_persistent(mca_coll_base_module_t* module);

/* coll_torii_component.c */
int coll_torii_error_of(torii_status status);
void coll_torii_say(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));
void coll_torii_count_taken(coll_torii_form_t form, coll_torii_kind_t kind);
void coll_torii_count_left(coll_torii_form_t form, coll_torii_kind_t kind);
