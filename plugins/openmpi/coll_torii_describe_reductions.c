/* SPDX-License-Identifier: Apache-2.0
 * From MPI's arguments to torii's: operations that combine. */
#include "plugins/openmpi/coll_torii.h"

/* Elements with holes are staged where a user function runs: torii moves whole elements, and the holes of the caller's
 * result are the caller's. torii's own pairs are C structs, whose holes nobody owns. */
static bool must_stage(const coll_torii_operation_t* operation, const ompi_datatype_t* type) {
  return operation->call.op == TORII_USER && type->super.size != (size_t)coll_torii_extent(type);
}

static size_t element_bytes(const coll_torii_operation_t* operation) {
  return operation->call.op == TORII_USER ? operation->call.user_bytes : torii_type_bytes(operation->call.type);
}

static coll_torii_move_t elements(const void* memory, size_t count, ompi_datatype_t* type) {
  return (coll_torii_move_t){.form = MOVE_ELEMENTS, .memory = (void*)memory, .count = count, .type = type};
}

static void set_input(coll_torii_operation_t* operation, const void* input, size_t count, ompi_datatype_t* type) {
  operation->call.input = (const char*)input + type->super.lb;
  if (!must_stage(operation, type)) return;
  operation->input_bytes = count * element_bytes(operation);
  operation->load = elements(input, count, type);
}

static void set_result(coll_torii_operation_t* operation, void* result, size_t count, ompi_datatype_t* type,
                       bool aside) {
  operation->call.result = (char*)result + type->super.lb;
  if (!aside && !must_stage(operation, type)) return;
  operation->result_bytes = count * element_bytes(operation);
  operation->store = elements(result, count, type);
}

/* What all of them begin with. */
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
  operation->rooted = true;
  operation->call.root = root;
  set_input(operation, input == MPI_IN_PLACE ? result : input, (size_t)count, type);
  if (ompi_comm_rank(comm) == root) set_result(operation, result, (size_t)count, type, false);
  return ANSWER_TAKE;
}

/* In place MPI puts the own block at the beginning of the buffer, torii where it stood: so the result is made aside. */
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

coll_torii_answer_t coll_torii_describe_reduce_scatter(coll_torii_operation_t* operation, const void* input,
                                                       void* result, const int* counts, ompi_datatype_t* type,
                                                       ompi_op_t* op, struct ompi_communicator_t* comm) {
  for (int rank = 1; rank < ompi_comm_size(comm); ++rank) {
    if (counts[rank] != counts[0]) return ANSWER_LEAVE;
  }
  return coll_torii_describe_reduce_scatter_block(operation, input, result, counts[0], type, op, comm);
}
