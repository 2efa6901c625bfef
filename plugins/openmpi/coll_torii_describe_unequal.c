/* SPDX-License-Identifier: Apache-2.0
 * From MPI's arguments to torii's: blocks with lengths of their own. In alltoallv and alltoallw no rank knows all
 * lengths, in gatherv and scatterv only the root does, so torii takes every such call. */
#include "plugins/openmpi/coll_torii_describe.h"

#include <stdlib.h>

#include "plugins/openmpi/coll_torii_elements.h"

/* Blocks of all_gather are padded to the longest if the padding is at most this long. The plan for short equal blocks
 * is quicker than the plan for all lengths. */
#define PADDING_BYTES_MAX ((size_t)4096)

/* One direction of a call as MPI describes it. */
typedef struct side_t {
  const void* memory;
  const int* counts;
  const int* places; /* in elements; in bytes with `types` */
  ompi_datatype_t* type;
  ompi_datatype_t* const* types; /* NULL: all blocks are of `type` */
  int blocks;
} side_t;

static const ompi_datatype_t* type_of(const side_t* side, int block) {
  return side->types == NULL ? side->type : side->types[block];
}

static size_t bytes_of(const side_t* side, int block) {
  return (size_t)side->counts[block] * type_of(side, block)->super.size;
}

/* The offset of the block's first byte in the memory. */
static ptrdiff_t place_of(const side_t* side, int block) {
  const ompi_datatype_t* const type = type_of(side, block);
  const ptrdiff_t unit = side->types == NULL ? coll_torii_extent(type) : 1;
  return unit * side->places[block] + type->super.true_lb;
}

/* The lowest offset of a block that is not empty; 0 if all are empty. */
static ptrdiff_t first_place(const side_t* side) {
  ptrdiff_t first = 0;
  bool is_found = false;
  for (int block = 0; block < side->blocks; ++block) {
    if (bytes_of(side, block) == 0) continue;
    const ptrdiff_t place = place_of(side, block);
    if (!is_found || place < first) first = place;
    is_found = true;
  }
  return first;
}

static bool is_plain(const side_t* side) {
  for (int block = 0; block < side->blocks; ++block) {
    if (bytes_of(side, block) == 0) continue;
    if (!coll_torii_is_plain((size_t)side->counts[block], type_of(side, block))) return false;
  }
  return true;
}

/* Room for torii's counts and displacements: two arrays for each of two directions, held by operation->lengths. NULL if
 * there is no memory. */
static size_t* lengths_of(coll_torii_operation_t* operation, size_t direction, int blocks) {
  if (operation->lengths == NULL) operation->lengths = malloc(4 * (size_t)blocks * sizeof(*operation->lengths));
  if (operation->lengths == NULL) operation->status = OMPI_ERR_OUT_OF_RESOURCE;
  return operation->lengths == NULL ? NULL : operation->lengths + direction * 2 * (size_t)blocks;
}

/* Writes the bytes of every block, then their offsets: from the returned address in the caller's memory, or one behind
 * the other in staging. */
static char* measure(const side_t* side, size_t* lengths, bool in_staging) {
  const ptrdiff_t first = in_staging ? 0 : first_place(side);
  size_t packed = 0;
  for (int block = 0; block < side->blocks; ++block) {
    const size_t bytes = bytes_of(side, block);
    lengths[block] = bytes;
    lengths[side->blocks + block] = in_staging ? packed : bytes == 0 ? 0 : (size_t)(place_of(side, block) - first);
    packed += bytes;
  }
  return (char*)side->memory + first;
}

static size_t total(const size_t* lengths, int blocks) {
  size_t bytes = 0;
  for (int block = 0; block < blocks; ++block) bytes += lengths[block];
  return bytes;
}

static coll_torii_move_t blocks_of(const side_t* side, const size_t* offsets) {
  return (coll_torii_move_t){.form = MOVE_BLOCKS,
                             .memory = (void*)side->memory,
                             .type = side->type,
                             .blocks = side->blocks,
                             .counts = side->counts,
                             .places = side->places,
                             .types = side->types,
                             .offsets = offsets};
}

static void set_input(coll_torii_operation_t* operation, const side_t* side, bool aside) {
  size_t* const lengths = lengths_of(operation, 0, side->blocks);
  if (lengths == NULL) return;
  const bool in_staging = aside || !is_plain(side);
  operation->call.input = measure(side, lengths, in_staging);
  operation->call.input_counts = lengths;
  operation->call.input_displacements = lengths + side->blocks;
  if (!in_staging) return;
  operation->input_bytes = total(lengths, side->blocks);
  operation->load = blocks_of(side, lengths + side->blocks);
}

static void set_result(coll_torii_operation_t* operation, const side_t* side) {
  size_t* const lengths = lengths_of(operation, 1, side->blocks);
  if (lengths == NULL) return;
  const bool in_staging = !is_plain(side);
  operation->call.result = measure(side, lengths, in_staging);
  operation->call.result_counts = lengths;
  operation->call.result_displacements = lengths + side->blocks;
  if (!in_staging) return;
  operation->result_bytes = total(lengths, side->blocks);
  operation->store = blocks_of(side, lengths + side->blocks);
}

/* Sets this rank's own block of gatherv, allgatherv or scatterv. */
static void set_own(coll_torii_operation_t* operation, const void* memory, int count, ompi_datatype_t* type,
                    bool is_input) {
  const size_t bytes = (size_t)count * type->super.size;
  operation->call.count = bytes;
  char* const first = coll_torii_first_byte(memory, type);
  const coll_torii_move_t move = {.form = MOVE_PACKED, .memory = (void*)memory, .count = (size_t)count, .type = type};
  const bool in_staging = bytes != 0 && !coll_torii_is_plain((size_t)count, type);
  if (is_input) {
    operation->call.input = first;
    if (in_staging) operation->load = move;
    if (in_staging) operation->input_bytes = bytes;
  } else {
    operation->call.result = first;
    if (in_staging) operation->store = move;
    if (in_staging) operation->result_bytes = bytes;
  }
}

static void set_call(coll_torii_operation_t* operation, torii_collective collective, int root) {
  operation->call.collective = collective;
  operation->call.type = TORII_U8;
  operation->call.root = root;
  operation->call.unequal = 1;
}

/* In place, the result overwrites the input while others still read it, so the input is copied. */
static coll_torii_answer_t describe_alltoall(coll_torii_operation_t* operation, const side_t* input,
                                             const side_t* result) {
  set_call(operation, TORII_ALLTOALL, 0);
  const bool in_place = input->memory == MPI_IN_PLACE;
  set_result(operation, result);
  set_input(operation, in_place ? result : input, in_place);
  return ANSWER_TAKE;
}

coll_torii_answer_t coll_torii_describe_alltoallv(coll_torii_operation_t* operation, const void* input,
                                                  const int* input_counts, const int* input_places,
                                                  ompi_datatype_t* input_type, void* result, const int* result_counts,
                                                  const int* result_places, ompi_datatype_t* result_type,
                                                  struct ompi_communicator_t* comm) {
  const int ranks = ompi_comm_size(comm);
  const side_t in = {input, input_counts, input_places, input_type, NULL, ranks};
  const side_t out = {result, result_counts, result_places, result_type, NULL, ranks};
  return describe_alltoall(operation, &in, &out);
}

coll_torii_answer_t coll_torii_describe_alltoallw(coll_torii_operation_t* operation, const void* input,
                                                  const int* input_counts, const int* input_places,
                                                  ompi_datatype_t* const* input_types, void* result,
                                                  const int* result_counts, const int* result_places,
                                                  ompi_datatype_t* const* result_types,
                                                  struct ompi_communicator_t* comm) {
  const int ranks = ompi_comm_size(comm);
  const side_t in = {input, input_counts, input_places, NULL, input_types, ranks};
  const side_t out = {result, result_counts, result_places, NULL, result_types, ranks};
  return describe_alltoall(operation, &in, &out);
}

coll_torii_answer_t coll_torii_describe_gatherv(coll_torii_operation_t* operation, const void* input, int input_count,
                                                ompi_datatype_t* input_type, void* result, const int* counts,
                                                const int* places, ompi_datatype_t* result_type, int root,
                                                struct ompi_communicator_t* comm) {
  set_call(operation, TORII_GATHER, root);
  if (ompi_comm_rank(comm) == root) {
    const side_t out = {result, counts, places, result_type, NULL, ompi_comm_size(comm)};
    set_result(operation, &out);
    if (input == MPI_IN_PLACE) {
      input = (char*)result + coll_torii_extent(result_type) * places[root];
      input_count = counts[root];
      input_type = result_type;
    }
  }
  set_own(operation, input, input_count, input_type, true);
  return ANSWER_TAKE;
}

coll_torii_answer_t coll_torii_describe_scatterv(coll_torii_operation_t* operation, const void* input,
                                                 const int* counts, const int* places, ompi_datatype_t* input_type,
                                                 void* result, int result_count, ompi_datatype_t* result_type, int root,
                                                 struct ompi_communicator_t* comm) {
  set_call(operation, TORII_SCATTER, root);
  if (ompi_comm_rank(comm) == root) {
    const side_t in = {input, counts, places, input_type, NULL, ompi_comm_size(comm)};
    set_input(operation, &in, false);
  }
  if (result != MPI_IN_PLACE) {
    set_own(operation, result, result_count, result_type, false);
  } else if (operation->lengths != NULL) {
    operation->call.count = operation->lengths[root];
    operation->result_in_input = true; /* it is there already */
    operation->own_offset = operation->lengths[ompi_comm_size(comm) + root];
  }
  return ANSWER_TAKE;
}

/* Puts the blocks of an all_gather `bytes` apart in staging, where `bytes` is the length of the longest. */
static void set_padded(coll_torii_operation_t* operation, const side_t* result, size_t bytes) {
  operation->call.unequal = 0;
  operation->call.count = bytes;
  size_t* const offsets = lengths_of(operation, 1, result->blocks);
  if (offsets == NULL) return;
  for (int block = 0; block < result->blocks; ++block) offsets[block] = bytes * (size_t)block;
  operation->result_bytes = bytes * (size_t)result->blocks;
  operation->store = blocks_of(result, offsets);
}

/* Every rank knows the counts of all ranks, and they mean the same bytes everywhere. */
coll_torii_answer_t coll_torii_describe_allgatherv(coll_torii_operation_t* operation, const void* input,
                                                   int input_count, ompi_datatype_t* input_type, void* result,
                                                   const int* counts, const int* places, ompi_datatype_t* result_type,
                                                   struct ompi_communicator_t* comm) {
  const int ranks = ompi_comm_size(comm);
  const int rank = ompi_comm_rank(comm);
  const side_t out = {result, counts, places, result_type, NULL, ranks};
  size_t bytes = 0, longest = 0;
  /* Whether allgather would put the blocks like this. The result has several elements even if each block has one. */
  bool is_dense = coll_torii_is_plain(2, result_type);
  for (int block = 0; block < ranks; ++block) {
    const size_t own = bytes_of(&out, block);
    bytes += own;
    if (own > longest) longest = own;
    is_dense = is_dense && (ptrdiff_t)places[block] == (ptrdiff_t)counts[0] * block;
  }
  if (bytes == 0) return ANSWER_DONE;
  if (input == MPI_IN_PLACE) {
    input = (char*)result + coll_torii_extent(result_type) * places[rank];
    input_count = counts[rank];
    input_type = result_type;
  }
  set_call(operation, TORII_ALL_GATHER, 0);
  set_own(operation, input, input_count, input_type, true);
  const size_t padding = longest * (size_t)ranks - bytes;
  if (padding > PADDING_BYTES_MAX) {
    set_result(operation, &out);
    return ANSWER_TAKE;
  }
  const size_t own = operation->call.count;
  if (padding == 0 && is_dense) {
    operation->call.unequal = 0;
    operation->call.result = coll_torii_first_byte(result, result_type);
    return ANSWER_TAKE;
  }
  set_padded(operation, &out, longest);
  if (own == longest) return ANSWER_TAKE;
  /* The padded block is longer than the caller's. */
  operation->input_bytes = longest;
  coll_torii_set_move(&operation->load, MOVE_PACKED, input, (size_t)input_count, input_type, 0);
  return ANSWER_TAKE;
}
