/* SPDX-License-Identifier: Apache-2.0
 * From MPI's arguments to torii's: blocks that differ from rank to rank, of equal and of own lengths. */
#include <stdlib.h>

#include "plugins/openmpi/coll_torii.h"

/* Stands where a rank has no elements and MPI allows NULL. */
static char nothing[1];

static ptrdiff_t extent_of(const ompi_datatype_t* type) { return type->super.ub - type->super.lb; }

static void* staged(coll_torii_operation_t* operation, coll_torii_staging_t* staging, size_t bytes) {
  if (coll_torii_take_staging(staging, bytes == 0 ? 1 : bytes)) return staging->memory;
  operation->status = OMPI_ERR_OUT_OF_RESOURCE;
  return NULL;
}

/* `count` elements that go in, where they stand or packed. */
static void set_input(coll_torii_operation_t* operation, const void* input, size_t count, const ompi_datatype_t* type,
                      bool aside) {
  operation->call.input = aside ? NULL : coll_torii_plain(input, count, type);
  if (operation->call.input != NULL) return;
  void* const packed = staged(operation, &operation->input, count * type->super.size);
  if (packed != NULL) coll_torii_pack(input, count, type, packed);
  operation->call.input = packed;
}

static void set_result(coll_torii_operation_t* operation, void* result, size_t count, ompi_datatype_t* type) {
  operation->call.result = coll_torii_plain(result, count, type);
  if (operation->call.result != NULL) return;
  operation->call.result = staged(operation, &operation->result, count * type->super.size);
  operation->finish = FINISH_UNPACK;
  operation->target = result;
  operation->target_count = count;
  operation->target_type = type;
}

static void set_call(coll_torii_operation_t* operation, coll_torii_kind_t kind, torii_collective collective,
                     size_t bytes, int root) {
  operation->kind = kind;
  operation->call.collective = collective;
  operation->call.type = TORII_U8;
  operation->call.count = bytes;
  operation->call.root = root;
}

/* In place the input is overwritten while others still want it, so it is made aside. */
void coll_torii_prepare_alltoall(coll_torii_operation_t* operation, const void* input, int input_count,
                                 ompi_datatype_t* input_type, void* result, int result_count,
                                 ompi_datatype_t* result_type, int ranks) {
  const size_t blocks = (size_t)ranks;
  set_call(operation, KIND_ALLTOALL, TORII_ALLTOALL, (size_t)result_count * result_type->super.size, 0);
  set_result(operation, result, (size_t)result_count * blocks, result_type);
  if (input == MPI_IN_PLACE) {
    set_input(operation, result, (size_t)result_count * blocks, result_type, true);
  } else {
    set_input(operation, input, (size_t)input_count * blocks, input_type, false);
  }
}

void coll_torii_prepare_gather(coll_torii_operation_t* operation, const void* input, int input_count,
                               ompi_datatype_t* input_type, void* result, int result_count,
                               ompi_datatype_t* result_type, int root, struct ompi_communicator_t* comm) {
  const size_t rank = (size_t)ompi_comm_rank(comm);
  const size_t blocks = (size_t)ompi_comm_size(comm);
  if ((int)rank != root) {
    set_call(operation, KIND_GATHER, TORII_GATHER, (size_t)input_count * input_type->super.size, root);
    set_input(operation, input, (size_t)input_count, input_type, false);
    return;
  }
  const size_t bytes = (size_t)result_count * result_type->super.size;
  set_call(operation, KIND_GATHER, TORII_GATHER, bytes, root);
  set_result(operation, result, (size_t)result_count * blocks, result_type);
  if (input != MPI_IN_PLACE) {
    set_input(operation, input, (size_t)input_count, input_type, false);
    return;
  }
  char* const own = operation->call.result == NULL ? NULL : (char*)operation->call.result + bytes * rank;
  if (own != NULL && operation->finish == FINISH_UNPACK) {
    const ptrdiff_t shift = extent_of(result_type) * (ptrdiff_t)((size_t)result_count * rank);
    coll_torii_pack((char*)result + shift, (size_t)result_count, result_type, own);
  }
  operation->call.input = own;
}

void coll_torii_prepare_scatter(coll_torii_operation_t* operation, const void* input, int input_count,
                                ompi_datatype_t* input_type, void* result, int result_count,
                                ompi_datatype_t* result_type, int root, struct ompi_communicator_t* comm) {
  const size_t rank = (size_t)ompi_comm_rank(comm);
  const size_t blocks = (size_t)ompi_comm_size(comm);
  if ((int)rank != root) {
    set_call(operation, KIND_SCATTER, TORII_SCATTER, (size_t)result_count * result_type->super.size, root);
    set_result(operation, result, (size_t)result_count, result_type);
    return;
  }
  const size_t bytes = (size_t)input_count * input_type->super.size;
  set_call(operation, KIND_SCATTER, TORII_SCATTER, bytes, root);
  set_input(operation, input, (size_t)input_count * blocks, input_type, false);
  if (result != MPI_IN_PLACE) {
    set_result(operation, result, (size_t)result_count, result_type);
  } else if (operation->call.input != NULL) {
    operation->call.result = (char*)operation->call.input + bytes * rank; /* where it stands already */
  }
}

/* Bytes of every block, and where they begin, behind `lengths`: 2 x ranks values. True where the blocks lie plainly in
 * the caller's memory; otherwise the places are those of blocks packed one behind the other. */
static bool measure(size_t* lengths, const int* counts, const int* places, const ompi_datatype_t* type, size_t ranks) {
  bool plain = opal_datatype_is_contiguous_memory_layout(&type->super, 2);
  for (size_t i = 0; i < ranks; ++i) plain = plain && places[i] >= 0;
  size_t packed = 0;
  for (size_t i = 0; i < ranks; ++i) {
    lengths[i] = (size_t)counts[i] * type->super.size;
    lengths[ranks + i] = plain ? (size_t)places[i] * type->super.size : packed;
    packed += lengths[i];
  }
  return plain;
}

static size_t total(const size_t* lengths, size_t ranks) {
  size_t bytes = 0;
  for (size_t i = 0; i < ranks; ++i) bytes += lengths[i];
  return bytes;
}

/* The arrays of one direction; kept until the operation is finished. */
static size_t* lengths_of(coll_torii_operation_t* operation, size_t which, size_t ranks) {
  if (operation->lengths == NULL) operation->lengths = malloc(4 * ranks * sizeof(*operation->lengths));
  if (operation->lengths == NULL) operation->status = OMPI_ERR_OUT_OF_RESOURCE;
  return operation->lengths == NULL ? NULL : operation->lengths + which * 2 * ranks;
}

static void set_input_blocks(coll_torii_operation_t* operation, const void* input, const int* counts, const int* places,
                             const ompi_datatype_t* type, size_t ranks, bool aside) {
  size_t* const lengths = lengths_of(operation, 0, ranks);
  if (lengths == NULL) return;
  const bool plain = measure(lengths, counts, places, type, ranks);
  operation->call.input_counts = lengths;
  operation->call.input_displacements = lengths + ranks;
  operation->call.input = input == NULL ? nothing : (const char*)input + type->super.true_lb;
  if (plain && !aside) return;
  size_t at = 0;
  char* const packed = staged(operation, &operation->input, total(lengths, ranks));
  for (size_t i = 0; packed != NULL && i < ranks; ++i) {
    lengths[ranks + i] = at;
    coll_torii_pack((const char*)input + extent_of(type) * places[i], (size_t)counts[i], type, packed + at);
    at += lengths[i];
  }
  operation->call.input = packed;
}

static void set_result_blocks(coll_torii_operation_t* operation, void* result, const int* counts, const int* places,
                              ompi_datatype_t* type, size_t ranks) {
  size_t* const lengths = lengths_of(operation, 1, ranks);
  if (lengths == NULL) return;
  const bool plain = measure(lengths, counts, places, type, ranks);
  operation->call.result_counts = lengths;
  operation->call.result_displacements = lengths + ranks;
  operation->call.result = result == NULL ? nothing : (char*)result + type->super.true_lb;
  if (plain) return;
  operation->call.result = staged(operation, &operation->result, total(lengths, ranks));
  operation->finish = FINISH_UNPACK_BLOCKS;
  operation->target = result;
  operation->target_type = type;
  operation->block_counts = counts;
  operation->block_places = places;
  operation->block_offsets = lengths + ranks;
  operation->blocks = (int)ranks;
}

void coll_torii_prepare_alltoallv(coll_torii_operation_t* operation, const void* input, const int* input_counts,
                                  const int* input_places, ompi_datatype_t* input_type, void* result,
                                  const int* result_counts, const int* result_places, ompi_datatype_t* result_type,
                                  int ranks) {
  const size_t blocks = (size_t)ranks;
  set_call(operation, KIND_ALLTOALLV, TORII_ALLTOALL, 0, 0);
  operation->call.unequal = 1;
  set_result_blocks(operation, result, result_counts, result_places, result_type, blocks);
  if (input == MPI_IN_PLACE) {
    set_input_blocks(operation, result, result_counts, result_places, result_type, blocks, true);
  } else {
    set_input_blocks(operation, input, input_counts, input_places, input_type, blocks, false);
  }
}

void coll_torii_prepare_gatherv(coll_torii_operation_t* operation, const void* input, int input_count,
                                ompi_datatype_t* input_type, void* result, const int* counts, const int* places,
                                ompi_datatype_t* result_type, int root, struct ompi_communicator_t* comm) {
  const size_t rank = (size_t)ompi_comm_rank(comm);
  if ((int)rank == root) {
    set_result_blocks(operation, result, counts, places, result_type, (size_t)ompi_comm_size(comm));
    if (input == MPI_IN_PLACE) {
      input = (char*)result + extent_of(result_type) * places[rank];
      input_count = counts[rank];
      input_type = result_type;
    }
  }
  set_call(operation, KIND_GATHERV, TORII_GATHER, (size_t)input_count * input_type->super.size, root);
  operation->call.unequal = 1;
  set_input(operation, input, (size_t)input_count, input_type, false);
}

void coll_torii_prepare_scatterv(coll_torii_operation_t* operation, const void* input, const int* counts,
                                 const int* places, ompi_datatype_t* input_type, void* result, int result_count,
                                 ompi_datatype_t* result_type, int root, struct ompi_communicator_t* comm) {
  const size_t rank = (size_t)ompi_comm_rank(comm);
  if ((int)rank == root) {
    set_input_blocks(operation, input, counts, places, input_type, (size_t)ompi_comm_size(comm), false);
  }
  operation->kind = KIND_SCATTERV;
  if (result != MPI_IN_PLACE) {
    set_call(operation, KIND_SCATTERV, TORII_SCATTER, (size_t)result_count * result_type->super.size, root);
    set_result(operation, result, (size_t)result_count, result_type);
  } else if (operation->lengths != NULL && operation->call.input != NULL) {
    const size_t* const lengths = operation->lengths;
    set_call(operation, KIND_SCATTERV, TORII_SCATTER, lengths[rank], root);
    operation->call.result = (char*)operation->call.input + lengths[(size_t)ompi_comm_size(comm) + rank];
  }
  operation->call.unequal = 1;
}
