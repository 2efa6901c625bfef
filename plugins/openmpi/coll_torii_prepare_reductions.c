/* SPDX-License-Identifier: Apache-2.0
 * From MPI's arguments to torii's: operations that combine. */
#include "plugins/openmpi/coll_torii.h"

/* Elements with holes are staged where a user function runs: torii moves whole elements, and the holes of the caller's
 * result are the caller's. torii's own pairs are C structs, whose holes nobody owns. */
static bool must_stage(const coll_torii_operation_t* operation, const ompi_datatype_t* type) {
  return operation->call.op == TORII_USER && type->super.size != (size_t)type->super.ub;
}

static size_t element_bytes(const coll_torii_operation_t* operation) {
  return operation->call.op == TORII_USER ? operation->call.user_bytes : torii_type_bytes(operation->call.type);
}

static void* staged(coll_torii_operation_t* operation, coll_torii_staging_t* staging, size_t count) {
  if (coll_torii_take_staging(staging, count * element_bytes(operation))) return staging->memory;
  operation->status = OMPI_ERR_OUT_OF_RESOURCE;
  return NULL;
}

static void set_input(coll_torii_operation_t* operation, const void* input, size_t count, ompi_datatype_t* type) {
  operation->call.input = input;
  if (!must_stage(operation, type)) return;
  void* const copy = staged(operation, &operation->input, count);
  if (copy != NULL) (void)ompi_datatype_copy_content_same_ddt(type, count, copy, (char*)input);
  operation->call.input = copy;
}

static void set_result(coll_torii_operation_t* operation, void* result, size_t count, ompi_datatype_t* type,
                       bool aside) {
  operation->call.result = result;
  if (!aside && !must_stage(operation, type)) return;
  operation->call.result = staged(operation, &operation->result, count);
  operation->finish = FINISH_COPY_ELEMENTS;
  operation->target = result;
  operation->target_count = count;
  operation->target_type = type;
}

coll_torii_answer_t coll_torii_prepare_allreduce(coll_torii_operation_t* operation, const void* input, void* result,
                                                 int count, ompi_datatype_t* type, ompi_op_t* op) {
  operation->kind = KIND_ALLREDUCE;
  if (count == 0 || type->super.size == 0) return ANSWER_DONE;
  if (!coll_torii_map_reduction(operation, op, type)) return ANSWER_LEAVE;
  operation->call.collective = TORII_ALLREDUCE;
  operation->call.count = (size_t)count;
  set_input(operation, input == MPI_IN_PLACE ? result : input, (size_t)count, type);
  set_result(operation, result, (size_t)count, type, false);
  return ANSWER_TAKE;
}

coll_torii_answer_t coll_torii_prepare_reduce(coll_torii_operation_t* operation, const void* input, void* result,
                                              int count, ompi_datatype_t* type, ompi_op_t* op, int root, int rank) {
  operation->kind = KIND_REDUCE;
  if (count == 0 || type->super.size == 0) return ANSWER_DONE;
  if (!coll_torii_map_reduction(operation, op, type)) return ANSWER_LEAVE;
  operation->call.collective = TORII_REDUCE;
  operation->call.count = (size_t)count;
  operation->call.root = root;
  set_input(operation, input == MPI_IN_PLACE ? result : input, (size_t)count, type);
  if (rank == root) set_result(operation, result, (size_t)count, type, false);
  return ANSWER_TAKE;
}

/* In place MPI puts the own block at the beginning of the buffer, torii where it stood: so the result is made aside. */
coll_torii_answer_t coll_torii_prepare_reduce_scatter_block(coll_torii_operation_t* operation, const void* input,
                                                            void* result, int count, ompi_datatype_t* type,
                                                            ompi_op_t* op, int ranks) {
  operation->kind = KIND_REDUCE_SCATTER_BLOCK;
  if (count == 0 || type->super.size == 0) return ANSWER_DONE;
  if (!coll_torii_map_reduction(operation, op, type)) return ANSWER_LEAVE;
  const bool in_place = input == MPI_IN_PLACE;
  operation->call.collective = TORII_REDUCE_SCATTER;
  operation->call.count = (size_t)count;
  set_input(operation, in_place ? result : input, (size_t)count * (size_t)ranks, type);
  set_result(operation, result, (size_t)count, type, in_place);
  return ANSWER_TAKE;
}

coll_torii_answer_t coll_torii_prepare_reduce_scatter(coll_torii_operation_t* operation, const void* input,
                                                      void* result, const int* counts, ompi_datatype_t* type,
                                                      ompi_op_t* op, int ranks) {
  operation->kind = KIND_REDUCE_SCATTER;
  for (int rank = 1; rank < ranks; ++rank) {
    if (counts[rank] != counts[0]) return ANSWER_LEAVE;
  }
  const coll_torii_answer_t answer =
      coll_torii_prepare_reduce_scatter_block(operation, input, result, counts[0], type, op, ranks);
  operation->kind = KIND_REDUCE_SCATTER;
  return answer;
}
