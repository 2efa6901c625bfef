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
#include <opal/util/output.h>
#include <stdatomic.h>
#include <string.h>
#include <torii/torii.h>

/* The operations that are taken; the order of the names in coll_torii_component.c. */
typedef enum coll_torii_kind_t {
  KIND_ALLGATHER,
  KIND_ALLGATHERV,
  KIND_ALLREDUCE,
  KIND_ALLTOALL,
  KIND_ALLTOALLV,
  KIND_BARRIER,
  KIND_BCAST,
  KIND_GATHER,
  KIND_GATHERV,
  KIND_REDUCE,
  KIND_REDUCE_SCATTER,
  KIND_REDUCE_SCATTER_BLOCK,
  KIND_SCATTER,
  KIND_SCATTERV,
  KIND_COUNT
} coll_torii_kind_t;

/* Every operation of MPI that the component takes, as X(name): one slot for the blocking form, i##name for the other.
 */
#define COLL_TORII_OPERATIONS(X) \
  X(allgather)                   \
  X(allgatherv)                  \
  X(allreduce)                   \
  X(barrier)                     \
  X(bcast)                       \
  X(reduce)                      \
  X(reduce_scatter)              \
  X(reduce_scatter_block)
/* Those of which torii takes the blocking form only. */
#define COLL_TORII_BLOCKS(X) \
  X(alltoall)                \
  X(alltoallv)               \
  X(gather)                  \
  X(gatherv)                 \
  X(scatter)                 \
  X(scatterv)

typedef struct coll_torii_component_t {
  mca_coll_base_component_2_0_0_t super;
  bool enable;
  int priority;
  int verbose;
  char* algorithm;
  char* determinism;
  char* topology;
  int stream;                           /* of opal_output */
  torii_context* context;               /* of the ranks of MPI_COMM_WORLD; NULL: none, on all of them */
  bool progress_registered;             /* the callback that moves non-blocking operations */
  _Atomic int64_t taken[2][KIND_COUNT]; /* calls that torii ran, [non-blocking][kind] */
  _Atomic int64_t left[2][KIND_COUNT];  /* calls that the component below got */
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

typedef struct coll_torii_module_t {
  mca_coll_base_module_t super;
  coll_torii_state_t state;
  torii_team* blocking;
  /* Non-blocking operations have a team of their own: Open MPI starts some from inside opal_progress(), at other places
   * among the blocking ones on every rank, and while this process may be inside a blocking one. */
  torii_team* background;
  /* Of blocking operations that do not commute: it combines in the order of ranks. Made when first needed. */
  torii_team* ordered;
  coll_torii_state_t ordered_state;
  coll_torii_user_t user; /* of the one blocking operation that may run */
#define COLL_TORII_SAVED_ONE(name)                 \
  mca_coll_base_module_##name##_fn_t below_##name; \
  mca_coll_base_module_t* below_##name##_module;
#define COLL_TORII_SAVED(name) COLL_TORII_SAVED_ONE(name) COLL_TORII_SAVED_ONE(i##name)
  COLL_TORII_OPERATIONS(COLL_TORII_SAVED)
  COLL_TORII_BLOCKS(COLL_TORII_SAVED_ONE)
#undef COLL_TORII_SAVED
#undef COLL_TORII_SAVED_ONE
} coll_torii_module_t;

OBJ_CLASS_DECLARATION(coll_torii_module_t);

/* Whether a call is torii's. All ranks of the communicator come to the same answer: it follows only from what MPI
 * guarantees to be equal on them (docs/openmpi.md, the rule). */
typedef enum {
  ANSWER_TAKE,
  ANSWER_LEAVE, /* to the component below */
  ANSWER_DONE   /* nothing has to move */
} coll_torii_answer_t;

/* Memory that stands in for a buffer of the caller; of the arena, so that peers reach it in place. */
typedef struct coll_torii_staging_t {
  void* memory; /* NULL: none */
  size_t bytes; /* of the memory, at least what was asked for */
} coll_torii_staging_t;

/* What happens to the result when torii is done with it. */
typedef enum {
  FINISH_NOTHING,
  FINISH_UNPACK,        /* a packed stream into result_count elements */
  FINISH_UNPACK_BLOCKS, /* one packed block per rank, each to its displacement */
  FINISH_COPY_ELEMENTS  /* whole elements, holes not included */
} coll_torii_finish_t;

/* One call of MPI as torii runs it: made by a coll_torii_prepare_* function, then run or started, then finished. */
typedef struct coll_torii_operation_t {
  coll_torii_kind_t kind;
  torii_call call;
  bool ordered;            /* does not commute */
  coll_torii_user_t* user; /* set by the caller of prepare: it lives as long as the operation */
  coll_torii_staging_t input;
  coll_torii_staging_t result;
  coll_torii_finish_t finish;
  void* target; /* the caller's result */
  size_t target_count;
  ompi_datatype_t* target_type;
  const int* block_counts; /* FINISH_UNPACK_BLOCKS: per rank, in elements */
  const int* block_places;
  size_t block_bytes; /* between the blocks in the staged result */
  int blocks;
  const size_t* block_offsets; /* of the blocks in the staged result; NULL: block_bytes apart */
  size_t* lengths;             /* what the call gives torii as counts and displacements */
  int* kept_blocks;            /* copies of the two arrays, of a non-blocking operation */
  int status;                  /* OMPI_SUCCESS, or why the operation could not be made on this rank */
} coll_torii_operation_t;

/* coll_torii_attach.c */
int coll_torii_make_context(struct ompi_communicator_t* world, coll_torii_module_t* module);
/* At a blocking operation only: makes the teams where the members can have them. True when they are there. */
bool coll_torii_attach(coll_torii_module_t* module, struct ompi_communicator_t* comm);
bool coll_torii_attach_ordered(coll_torii_module_t* module, struct ompi_communicator_t* comm);
void coll_torii_detach(coll_torii_module_t* module);
/* Whether the peers have this component, with the same version and parameters. */
bool coll_torii_peers_agree(struct ompi_communicator_t* comm);
void coll_torii_announce(void);

/* coll_torii_reduction.c: sets type, op, user function and whether the operation is ordered. False: torii cannot. */
bool coll_torii_map_reduction(coll_torii_operation_t* operation, ompi_op_t* op, ompi_datatype_t* type);

/* coll_torii_staging.c */
bool coll_torii_take_staging(coll_torii_staging_t* staging, size_t bytes);
void coll_torii_give_staging(coll_torii_staging_t* staging);
void coll_torii_free_staging(void);
/* The first byte of `count` elements that lie without holes in memory; NULL where they do not. */
void* coll_torii_plain(const void* buffer, size_t count, const ompi_datatype_t* type);
void coll_torii_pack(const void* buffer, size_t count, const ompi_datatype_t* type, void* packed);
void coll_torii_unpack(const void* packed, size_t count, const ompi_datatype_t* type, void* buffer);

/* coll_torii_prepare.c and coll_torii_prepare_reductions.c: from the arguments of MPI to an operation. */
coll_torii_answer_t coll_torii_prepare_barrier(coll_torii_operation_t* operation);
coll_torii_answer_t coll_torii_prepare_bcast(coll_torii_operation_t* operation, void* buffer, int count,
                                             ompi_datatype_t* type, int root, int rank);
coll_torii_answer_t coll_torii_prepare_allgather(coll_torii_operation_t* operation, const void* input, int input_count,
                                                 ompi_datatype_t* input_type, void* result, int result_count,
                                                 ompi_datatype_t* result_type, struct ompi_communicator_t* comm);
coll_torii_answer_t coll_torii_prepare_allgatherv(coll_torii_operation_t* operation, const void* input, int input_count,
                                                  ompi_datatype_t* input_type, void* result, const int* counts,
                                                  const int* places, ompi_datatype_t* result_type,
                                                  struct ompi_communicator_t* comm);
coll_torii_answer_t coll_torii_prepare_allreduce(coll_torii_operation_t* operation, const void* input, void* result,
                                                 int count, ompi_datatype_t* type, ompi_op_t* op);
coll_torii_answer_t coll_torii_prepare_reduce(coll_torii_operation_t* operation, const void* input, void* result,
                                              int count, ompi_datatype_t* type, ompi_op_t* op, int root, int rank);
coll_torii_answer_t coll_torii_prepare_reduce_scatter_block(coll_torii_operation_t* operation, const void* input,
                                                            void* result, int count, ompi_datatype_t* type,
                                                            ompi_op_t* op, int ranks);
coll_torii_answer_t coll_torii_prepare_reduce_scatter(coll_torii_operation_t* operation, const void* input,
                                                      void* result, const int* counts, ompi_datatype_t* type,
                                                      ompi_op_t* op, int ranks);
/* Copies the arrays of block_counts and block_places: programs let go of them while an operation is in flight (mpi4py
 * does), though MPI forbids it. */
void coll_torii_keep_blocks(coll_torii_operation_t* operation);
/* Brings the result to where the caller wants it, and gives the staging back. */
void coll_torii_finish(coll_torii_operation_t* operation);

/* coll_torii_prepare_blocks.c: these always take the call. */
void coll_torii_prepare_alltoall(coll_torii_operation_t* operation, const void* input, int input_count,
                                 ompi_datatype_t* input_type, void* result, int result_count,
                                 ompi_datatype_t* result_type, int ranks);
void coll_torii_prepare_alltoallv(coll_torii_operation_t* operation, const void* input, const int* input_counts,
                                  const int* input_places, ompi_datatype_t* input_type, void* result,
                                  const int* result_counts, const int* result_places, ompi_datatype_t* result_type,
                                  int ranks);
void coll_torii_prepare_gather(coll_torii_operation_t* operation, const void* input, int input_count,
                               ompi_datatype_t* input_type, void* result, int result_count,
                               ompi_datatype_t* result_type, int root, struct ompi_communicator_t* comm);
void coll_torii_prepare_gatherv(coll_torii_operation_t* operation, const void* input, int input_count,
                                ompi_datatype_t* input_type, void* result, const int* counts, const int* places,
                                ompi_datatype_t* result_type, int root, struct ompi_communicator_t* comm);
void coll_torii_prepare_scatter(coll_torii_operation_t* operation, const void* input, int input_count,
                                ompi_datatype_t* input_type, void* result, int result_count,
                                ompi_datatype_t* result_type, int root, struct ompi_communicator_t* comm);
void coll_torii_prepare_scatterv(coll_torii_operation_t* operation, const void* input, const int* counts,
                                 const int* places, ompi_datatype_t* input_type, void* result, int result_count,
                                 ompi_datatype_t* result_type, int root, struct ompi_communicator_t* comm);

/* coll_torii_blocking.c: what all blocking slots do. */
bool coll_torii_is_empty(int count, const ompi_datatype_t* type);
bool coll_torii_begin(coll_torii_operation_t* operation, coll_torii_module_t* module, struct ompi_communicator_t* comm);
bool coll_torii_run(coll_torii_operation_t* operation, coll_torii_module_t* module, struct ompi_communicator_t* comm,
                    int* status);
void coll_torii_count_left(const coll_torii_module_t* module, coll_torii_kind_t kind);

/* coll_torii_blocking.c, coll_torii_blocks.c and coll_torii_request.c: the functions of the slots. */
void coll_torii_set_blocks(mca_coll_base_module_t* module);
void coll_torii_set_blocking(mca_coll_base_module_t* module);
void coll_torii_set_non_blocking(mca_coll_base_module_t* module);
void coll_torii_stop_progress(void);

/* coll_torii_component.c */
int coll_torii_error_of(torii_status status);
void coll_torii_say(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));
