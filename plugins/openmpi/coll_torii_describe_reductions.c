/* SPDX-License-Identifier: Apache-2.0
 * From MPI's arguments to torii's: operations that combine. */
#include "plugins/openmpi/coll_torii_describe.h"

#include <stdlib.h>

#include "plugins/openmpi/coll_torii_elements.h"
#include "plugins/openmpi/coll_torii_reduction.h"

/* Elements with holes are staged if a user function runs: torii moves whole elements, but must not write the holes of
 * the caller's result. Torii's own pairs are C structs, whose holes may be written. */
static bool must_stage(const coll_torii_operation_t* operation, const ompi_datatype_t* type) {
  return operation->call.op == TORII_USER && type->super.size != (size_t)coll_torii_extent(type);
}

static size_t element_bytes(const coll_torii_operation_t* operation) {
  return operation->call.op == TORII_USER ? operation->call.user_bytes : torii_type_bytes(operation->call.type);
}

static void set_input(coll_torii_operation_t* operation, const void* input, size_t count, ompi_datatype_t* type) {
  operation->call.input = (const char*)input + type->super.lb;
  if (!must_stage(operation, type)) return;
  operation->input_bytes = count * element_bytes(operation);
  coll_torii_set_move(&operation->load, MOVE_ELEMENTS, input, count, type, 0);
}

static void set_result(coll_torii_operation_t* operation, void* result, size_t count, ompi_datatype_t* type,
                       bool aside) {
  operation->call.result = (char*)result + type->super.lb;
  if (!aside && !must_stage(operation, type)) return;
  operation->result_bytes = count * element_bytes(operation);
  coll_torii_set_move(&operation->store, MOVE_ELEMENTS, result, count, type, 0);
}

/* Begins every description. */
static coll_torii_answer_t set_call(coll_torii_operation_t* operation, torii_collective collective, int count,
                                    ompi_datatype_t* type, ompi_op_t* op) {
  if (coll_torii_is_empty(count, type)) return ANSWER_DONE;
  if (!coll_torii_map_reduction(operation, op, type)) return ANSWER_LEAVE;
  operation->call.collective = collective;
  operation->call.count = (size_t)count;
  return ANSWER_TAKE;
}

coll_torii_answer_t coll_torii_describe_allreduce(coll_torii_operation_t* operation, const void* input, void* result,
                                                  int count, ompi_datatype_t* type, ompi_op_t* op,
                                                  struct ompi_communicator_t* comm) {
  (void)comm;
  const coll_torii_answer_t answer = set_call(operation, TORII_ALLREDUCE, count, type, op);
  if (answer != ANSWER_TAKE) return answer;
  set_input(operation, input == MPI_IN_PLACE ? result : input, (size_t)count, type);
  set_result(operation, result, (size_t)count, type, false);
  return ANSWER_TAKE;
}

coll_torii_answer_t coll_torii_describe_reduce(coll_torii_operation_t* operation, const void* input, void* result,
                                               int count, ompi_datatype_t* type, ompi_op_t* op, int root,
                                               struct ompi_communicator_t* comm) {
  const coll_torii_answer_t answer = set_call(operation, TORII_REDUCE, count, type, op);
  if (answer != ANSWER_TAKE) return answer;
  operation->call.root = root;
  set_input(operation, input == MPI_IN_PLACE ? result : input, (size_t)count, type);
  if (ompi_comm_rank(comm) == root) set_result(operation, result, (size_t)count, type, false);
  return ANSWER_TAKE;
}

/* In place, MPI puts the own block at the beginning of the buffer and torii leaves it at its place, so the result is
 * staged. */
coll_torii_answer_t coll_torii_describe_reduce_scatter_block(coll_torii_operation_t* operation, const void* input,
                                                             void* result, int count, ompi_datatype_t* type,
                                                             ompi_op_t* op, struct ompi_communicator_t* comm) {
  const coll_torii_answer_t answer = set_call(operation, TORII_REDUCE_SCATTER, count, type, op);
  if (answer != ANSWER_TAKE) return answer;
  const bool in_place = input == MPI_IN_PLACE;
  set_input(operation, in_place ? result : input, (size_t)count * (size_t)ompi_comm_size(comm), type);
  set_result(operation, result, (size_t)count, type, in_place);
  return ANSWER_TAKE;
}

/* All ranks have the same counts. If the counts are equal, the plan for equal blocks serves the call. */
coll_torii_answer_t coll_torii_describe_reduce_scatter(coll_torii_operation_t* operation, const void* input,
                                                       void* result, const int* counts, ompi_datatype_t* type,
                                                       ompi_op_t* op, struct ompi_communicator_t* comm) {
  const int ranks = ompi_comm_size(comm);
  size_t total = 0;
  bool is_equal = true;
  for (int rank = 0; rank < ranks; ++rank) {
    total += (size_t)counts[rank];
    is_equal = is_equal && counts[rank] == counts[0];
  }
  if (is_equal) {
    return coll_torii_describe_reduce_scatter_block(operation, input, result, counts[0], type, op, comm);
  }
  const coll_torii_answer_t answer = set_call(operation, TORII_REDUCE_SCATTER, 1, type, op);
  if (answer != ANSWER_TAKE) return answer;
  operation->call.unequal = 1;
  operation->call.count = 0;
  operation->lengths = malloc((size_t)ranks * sizeof(*operation->lengths));
  if (operation->lengths == NULL) {
    operation->status = OMPI_ERR_OUT_OF_RESOURCE;
    return ANSWER_TAKE;
  }
  for (int rank = 0; rank < ranks; ++rank) operation->lengths[rank] = (size_t)counts[rank];
  operation->call.input_counts = operation->lengths;
  const bool in_place = input == MPI_IN_PLACE;
  set_input(operation, in_place ? result : input, total, type);
  set_result(operation, result, (size_t)counts[ompi_comm_rank(comm)], type, in_place);
  return ANSWER_TAKE;
}

static coll_torii_answer_t describe_prefix(coll_torii_operation_t* operation, torii_collective collective,
                                           const void* input, void* result, int count, ompi_datatype_t* type,
                                           ompi_op_t* op, bool has_result) {
  const coll_torii_answer_t answer = set_call(operation, collective, count, type, op);
  if (answer != ANSWER_TAKE) return answer;
  set_input(operation, input == MPI_IN_PLACE ? result : input, (size_t)count, type);
  if (has_result) set_result(operation, result, (size_t)count, type, false);
  return ANSWER_TAKE;
}

coll_torii_answer_t coll_torii_describe_scan(coll_torii_operation_t* operation, const void* input, void* result,
                                             int count, ompi_datatype_t* type, ompi_op_t* op,
                                             struct ompi_communicator_t* comm) {
  (void)comm;
  return describe_prefix(operation, TORII_SCAN, input, result, count, type, op, true);
}

coll_torii_answer_t coll_torii_describe_exscan(coll_torii_operation_t* operation, const void* input, void* result,
                                               int count, ompi_datatype_t* type, ompi_op_t* op,
                                               struct ompi_communicator_t* comm) {
  return describe_prefix(operation, TORII_EXSCAN, input, result, count, type, op, ompi_comm_rank(comm) != 0);
}
