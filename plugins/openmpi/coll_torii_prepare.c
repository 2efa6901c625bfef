/* SPDX-License-Identifier: Apache-2.0
 * From MPI's arguments to torii's: operations that only move bytes. */
#include "plugins/openmpi/coll_torii.h"

/* Blocks of unequal length travel as blocks of the longest, as long as not more than this many bytes go in vain. */
#define PADDING_BYTES_MAX ((size_t)4096)

static void* fail(coll_torii_operation_t* operation) {
  operation->status = OMPI_ERR_OUT_OF_RESOURCE;
  return NULL;
}

static void* staged(coll_torii_operation_t* operation, coll_torii_staging_t* staging, size_t bytes) {
  return coll_torii_take_staging(staging, bytes) ? staging->memory : fail(operation);
}

static ptrdiff_t extent_of(const ompi_datatype_t* type) { return type->super.ub - type->super.lb; }

coll_torii_answer_t coll_torii_prepare_barrier(coll_torii_operation_t* operation) {
  operation->kind = KIND_BARRIER;
  operation->call.collective = TORII_BARRIER;
  return ANSWER_TAKE;
}

coll_torii_answer_t coll_torii_prepare_bcast(coll_torii_operation_t* operation, void* buffer, int count,
                                             ompi_datatype_t* type, int root, int rank) {
  operation->kind = KIND_BCAST;
  const size_t bytes = (size_t)count * type->super.size;
  if (bytes == 0) return ANSWER_DONE;
  torii_call* const call = &operation->call;
  call->collective = TORII_BROADCAST;
  call->count = bytes;
  call->type = TORII_U8;
  call->root = root;
  call->result = coll_torii_plain(buffer, (size_t)count, type);
  if (call->result != NULL) return ANSWER_TAKE;
  call->result = staged(operation, &operation->result, bytes);
  if (call->result == NULL) return ANSWER_TAKE;
  if (rank == root) {
    coll_torii_pack(buffer, (size_t)count, type, call->result);
    return ANSWER_TAKE;
  }
  operation->finish = FINISH_UNPACK;
  operation->target = buffer;
  operation->target_count = (size_t)count;
  operation->target_type = type;
  return ANSWER_TAKE;
}

/* The own block: from the caller's input, which may be a part of the result (in place), staged where it has holes or is
 * shorter than what every rank sends. */
static void set_input(coll_torii_operation_t* operation, const void* input, size_t count, ompi_datatype_t* type,
                      bool must_stage) {
  torii_call* const call = &operation->call;
  call->input = must_stage ? NULL : coll_torii_plain(input, count, type);
  if (call->input != NULL) return;
  void* const packed = staged(operation, &operation->input, call->count);
  if (packed != NULL) coll_torii_pack(input, count, type, packed);
  call->input = packed;
}

coll_torii_answer_t coll_torii_prepare_allgather(coll_torii_operation_t* operation, const void* input, int input_count,
                                                 ompi_datatype_t* input_type, void* result, int result_count,
                                                 ompi_datatype_t* result_type, struct ompi_communicator_t* comm) {
  operation->kind = KIND_ALLGATHER;
  const size_t ranks = (size_t)ompi_comm_size(comm);
  const size_t rank = (size_t)ompi_comm_rank(comm);
  torii_call* const call = &operation->call;
  call->collective = TORII_ALL_GATHER;
  call->type = TORII_U8;
  call->count = (size_t)result_count * result_type->super.size;
  if (call->count == 0) return ANSWER_DONE;
  const size_t all = (size_t)result_count * ranks;
  call->result = coll_torii_plain(result, all, result_type);
  if (call->result == NULL) {
    call->result = staged(operation, &operation->result, call->count * ranks);
    if (call->result == NULL) return ANSWER_TAKE;
    operation->finish = FINISH_UNPACK;
    operation->target = result;
    operation->target_count = all;
    operation->target_type = result_type;
  }
  if (input != MPI_IN_PLACE) {
    set_input(operation, input, (size_t)input_count, input_type, false);
    return ANSWER_TAKE;
  }
  char* const own = (char*)call->result + call->count * rank;
  if (operation->finish == FINISH_UNPACK) {
    const ptrdiff_t shift = extent_of(result_type) * (ptrdiff_t)((size_t)result_count * rank);
    coll_torii_pack((char*)result + shift, (size_t)result_count, result_type, own);
  }
  call->input = own;
  return ANSWER_TAKE;
}

/* Whether the blocks stand one behind the other as allgather would put them. */
static bool is_dense(const int* counts, const int* places, size_t ranks) {
  for (size_t i = 0; i < ranks; ++i) {
    if (counts[i] != counts[0] || (size_t)places[i] != (size_t)counts[0] * i) return false;
  }
  return true;
}

/* The counts of all ranks are known to every rank, and the bytes that they stand for are equal everywhere. */
coll_torii_answer_t coll_torii_prepare_allgatherv(coll_torii_operation_t* operation, const void* input, int input_count,
                                                  ompi_datatype_t* input_type, void* result, const int* counts,
                                                  const int* places, ompi_datatype_t* result_type,
                                                  struct ompi_communicator_t* comm) {
  const size_t ranks = (size_t)ompi_comm_size(comm);
  const size_t rank = (size_t)ompi_comm_rank(comm);
  operation->kind = KIND_ALLGATHERV;
  size_t total = 0, longest = 0;
  for (size_t i = 0; i < ranks; ++i) {
    const size_t bytes = (size_t)counts[i] * result_type->super.size;
    total += bytes;
    if (bytes > longest) longest = bytes;
  }
  if (total == 0) return ANSWER_DONE;
  if (longest * ranks - total > PADDING_BYTES_MAX) return ANSWER_LEAVE;
  torii_call* const call = &operation->call;
  call->collective = TORII_ALL_GATHER;
  call->type = TORII_U8;
  call->count = longest;
  if (is_dense(counts, places, ranks)) call->result = coll_torii_plain(result, (size_t)counts[0] * ranks, result_type);
  if (call->result == NULL) {
    call->result = staged(operation, &operation->result, longest * ranks);
    if (call->result == NULL) return ANSWER_TAKE;
    operation->finish = FINISH_UNPACK_BLOCKS;
    operation->target = result;
    operation->target_type = result_type;
    operation->block_counts = counts;
    operation->block_places = places;
    operation->block_bytes = longest;
    operation->blocks = (int)ranks;
  }
  size_t count = (size_t)input_count;
  if (input == MPI_IN_PLACE) {
    input = (char*)result + extent_of(result_type) * places[rank];
    count = (size_t)counts[rank];
    input_type = result_type;
  }
  set_input(operation, input, count, input_type, (size_t)counts[rank] * result_type->super.size < longest);
  return ANSWER_TAKE;
}
