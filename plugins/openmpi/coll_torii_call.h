/* SPDX-License-Identifier: Apache-2.0
 * One call of MPI as torii runs it: torii's call, the staging that it needs, and the moves between the two. */
#pragma once

#include "plugins/openmpi/coll_torii_openmpi.h"
#include "plugins/openmpi/coll_torii_operations.h"

#include <stddef.h>
#include <string.h>
#include <torii/torii.h>

/* The data of torii's user function: it runs an operation of MPI on elements of a type. */
typedef struct coll_torii_user_t {
  ompi_op_t* op;
  ompi_datatype_t* type;
} coll_torii_user_t;

/* Whether torii takes a call. All ranks of the communicator give the same answer, because it depends only on values
 * that MPI guarantees to be equal (docs/openmpi.md, the rule). */
typedef enum {
  ANSWER_TAKE,
  ANSWER_LEAVE, /* to the component below */
  /* Nothing has to move. The call must not wait for others. MPI's layer returns early for a count of 0 but not for a
   * type without bytes, so some ranks may not come here. */
  ANSWER_DONE
} coll_torii_answer_t;

/* Memory of the arena that replaces a buffer of the caller, so that peers reach it in place. */
typedef struct coll_torii_staging_t {
  void* memory; /* NULL: none */
  size_t bytes; /* of the memory, at least as many as needed */
} coll_torii_staging_t;

/* How elements of the caller's memory correspond to bytes of staging. */
typedef enum {
  MOVE_NOTHING,
  MOVE_PACKED,   /* `count` elements: one packed stream */
  MOVE_BLOCKS,   /* a packed stream per block */
  MOVE_ELEMENTS, /* whole elements side by side, holes not included */
  MOVE_PARTS     /* `count` elements; torii moves them part by part, without staging */
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
  const int* places;             /* in elements; in bytes if `types` is set */
  ompi_datatype_t* const* types; /* NULL: all are of `type` */
  const size_t* offsets;
} coll_torii_move_t;

/* Sets all that forms without blocks use. It does so field by field. A compound literal would be written in words and
 * then read in longer pieces, and the processor waits for such reads. */
static inline void coll_torii_set_move(coll_torii_move_t* move, coll_torii_move_form_t form, const void* memory,
                                       size_t count, ompi_datatype_t* type, size_t offset) {
  move->form = form;
  move->memory = (void*)memory;
  move->count = count;
  move->type = type;
  move->offset = offset;
  move->types = NULL;
}

/* The data of the functions by which torii moves a vector part by part. */
typedef struct coll_torii_access_t coll_torii_access_t;

/* One call of MPI as torii runs it. coll_torii_describe_* only describe the call; acquire() takes the staging. Then
 * follow load(), torii's operation and store(), many times if the call is persistent; release() returns the staging. */
typedef struct coll_torii_operation_t {
  coll_torii_kind_t kind;
  int status; /* OMPI_SUCCESS, or why this rank could not prepare the operation */
  torii_call call;
  coll_torii_user_t user;
  size_t input_bytes; /* of the staging that replaces the caller's input; 0: none */
  size_t result_bytes;
  bool input_in_result; /* in place: the input is in the result, `own_offset` behind its beginning */
  bool result_in_input;
  bool loads_result; /* `load` goes to the staged result */
  size_t own_offset;
  size_t* lengths;             /* the counts and displacements of the torii call */
  void* kept;                  /* copies of the arrays of the moves */
  coll_torii_access_t* access; /* MOVE_PARTS: from acquire() to release() */
  coll_torii_staging_t input;
  coll_torii_staging_t result;
  /* coll_torii_begin() clears all fields above and only the forms of the moves: short calls get faster. */
  coll_torii_move_t load;  /* before each run */
  coll_torii_move_t store; /* after it; MOVE_PARTS: during it, and at the root in the other direction */
} coll_torii_operation_t;

static inline void coll_torii_begin(coll_torii_operation_t* operation, coll_torii_kind_t kind) {
  memset(operation, 0, offsetof(coll_torii_operation_t, load));
  operation->kind = kind;
  operation->call.size = sizeof(operation->call);
  operation->load.form = MOVE_NOTHING;
  operation->store.form = MOVE_NOTHING;
}

/* Whether the call uses the caller's buffers only: nothing to acquire, load, store or release. */
static inline bool coll_torii_is_direct(const coll_torii_operation_t* operation) {
  return operation->status == OMPI_SUCCESS && operation->input_bytes == 0 && operation->result_bytes == 0 &&
         operation->lengths == NULL && !operation->input_in_result && !operation->result_in_input &&
         operation->store.form != MOVE_PARTS;
}
