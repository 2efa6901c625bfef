/* SPDX-License-Identifier: Apache-2.0
 * From MPI's arguments to torii's: barrier, broadcast, and operations with blocks of equal length for every rank. */
#include "plugins/openmpi/coll_torii_describe.h"

#include "plugins/openmpi/coll_torii_access.h"
#include "plugins/openmpi/coll_torii_elements.h"

static void set_call(coll_torii_operation_t* operation, torii_collective collective, size_t bytes, int root) {
  operation->call.collective = collective;
  operation->call.type = TORII_U8;
  operation->call.count = bytes;
  operation->call.root = root;
}

/* Sets an input of `count` elements, in the caller's memory or packed. */
static void set_input(coll_torii_operation_t* operation, const void* input, size_t count, ompi_datatype_t* type,
                      bool aside) {
  if (coll_torii_is_plain(count, type) && !aside) {
    operation->call.input = coll_torii_first_byte(input, type);
    return;
  }
  operation->input_bytes = count * type->super.size;
  coll_torii_set_move(&operation->load, MOVE_PACKED, input, count, type, 0);
}

static void set_result(coll_torii_operation_t* operation, void* result, size_t count, ompi_datatype_t* type) {
  if (coll_torii_is_plain(count, type)) {
    operation->call.result = coll_torii_first_byte(result, type);
    return;
  }
  operation->result_bytes = count * type->super.size;
  coll_torii_set_move(&operation->store, MOVE_PACKED, result, count, type, 0);
}

/* The input is the block at element `first` of the result. */
static void set_input_in_result(coll_torii_operation_t* operation, const void* result, size_t first, size_t count,
                                ompi_datatype_t* type) {
  operation->input_in_result = true;
  operation->own_offset = first * type->super.size;
  if (operation->result_bytes == 0) return;
  operation->loads_result = true;
  const char* const block = (const char*)result + coll_torii_extent(type) * (ptrdiff_t)first;
  coll_torii_set_move(&operation->load, MOVE_PACKED, block, count, type, operation->own_offset);
}

coll_torii_answer_t coll_torii_describe_barrier(coll_torii_operation_t* operation, struct ompi_communicator_t* comm) {
  (void)comm;
  operation->call.collective = TORII_BARRIER;
  return ANSWER_TAKE;
}

coll_torii_answer_t coll_torii_describe_bcast(coll_torii_operation_t* operation, void* buffer, int count,
                                              ompi_datatype_t* type, int root, struct ompi_communicator_t* comm) {
  if (coll_torii_is_empty(count, type)) return ANSWER_DONE;
  set_call(operation, TORII_BROADCAST, (size_t)count * type->super.size, root);
  if (!coll_torii_is_plain((size_t)count, type) &&
      coll_torii_moves_by_parts((size_t)count, type, ompi_comm_size(comm))) {
    coll_torii_set_move(&operation->store, MOVE_PARTS, buffer, (size_t)count, type, 0);
    return ANSWER_TAKE;
  }
  set_result(operation, buffer, (size_t)count, type);
  if (operation->result_bytes == 0 || ompi_comm_rank(comm) != root) return ANSWER_TAKE;
  coll_torii_set_move(&operation->load, MOVE_PACKED, buffer, (size_t)count, type, 0);
  operation->loads_result = true;
  operation->store.form = MOVE_NOTHING;
  return ANSWER_TAKE;
}

coll_torii_answer_t coll_torii_describe_allgather(coll_torii_operation_t* operation, const void* input, int input_count,
                                                  ompi_datatype_t* input_type, void* result, int result_count,
                                                  ompi_datatype_t* result_type, struct ompi_communicator_t* comm) {
  if (coll_torii_is_empty(result_count, result_type)) return ANSWER_DONE;
  const size_t count = (size_t)result_count;
  set_call(operation, TORII_ALL_GATHER, count * result_type->super.size, 0);
  set_result(operation, result, count * (size_t)ompi_comm_size(comm), result_type);
  if (input == MPI_IN_PLACE) {
    set_input_in_result(operation, result, count * (size_t)ompi_comm_rank(comm), count, result_type);
  } else {
    set_input(operation, input, (size_t)input_count, input_type, false);
  }
  return ANSWER_TAKE;
}

/* In place, the result overwrites the input while others still read it, so the input is copied. */
coll_torii_answer_t coll_torii_describe_alltoall(coll_torii_operation_t* operation, const void* input, int input_count,
                                                 ompi_datatype_t* input_type, void* result, int result_count,
                                                 ompi_datatype_t* result_type, struct ompi_communicator_t* comm) {
  if (coll_torii_is_empty(result_count, result_type)) return ANSWER_DONE;
  const size_t blocks = (size_t)ompi_comm_size(comm);
  set_call(operation, TORII_ALLTOALL, (size_t)result_count * result_type->super.size, 0);
  set_result(operation, result, (size_t)result_count * blocks, result_type);
  if (input == MPI_IN_PLACE) {
    set_input(operation, result, (size_t)result_count * blocks, result_type, true);
  } else {
    set_input(operation, input, (size_t)input_count * blocks, input_type, false);
  }
  return ANSWER_TAKE;
}

coll_torii_answer_t coll_torii_describe_gather(coll_torii_operation_t* operation, const void* input, int input_count,
                                               ompi_datatype_t* input_type, void* result, int result_count,
                                               ompi_datatype_t* result_type, int root,
                                               struct ompi_communicator_t* comm) {
  if (ompi_comm_rank(comm) != root) {
    if (coll_torii_is_empty(input_count, input_type)) return ANSWER_DONE;
    set_call(operation, TORII_GATHER, (size_t)input_count * input_type->super.size, root);
    set_input(operation, input, (size_t)input_count, input_type, false);
    return ANSWER_TAKE;
  }
  if (coll_torii_is_empty(result_count, result_type)) return ANSWER_DONE;
  const size_t count = (size_t)result_count;
  set_call(operation, TORII_GATHER, count * result_type->super.size, root);
  set_result(operation, result, count * (size_t)ompi_comm_size(comm), result_type);
  if (input == MPI_IN_PLACE) {
    set_input_in_result(operation, result, count * (size_t)root, count, result_type);
  } else {
    set_input(operation, input, (size_t)input_count, input_type, false);
  }
  return ANSWER_TAKE;
}

coll_torii_answer_t coll_torii_describe_scatter(coll_torii_operation_t* operation, const void* input, int input_count,
                                                ompi_datatype_t* input_type, void* result, int result_count,
                                                ompi_datatype_t* result_type, int root,
                                                struct ompi_communicator_t* comm) {
  if (ompi_comm_rank(comm) != root) {
    if (coll_torii_is_empty(result_count, result_type)) return ANSWER_DONE;
    set_call(operation, TORII_SCATTER, (size_t)result_count * result_type->super.size, root);
    set_result(operation, result, (size_t)result_count, result_type);
    return ANSWER_TAKE;
  }
  if (coll_torii_is_empty(input_count, input_type)) return ANSWER_DONE;
  const size_t bytes = (size_t)input_count * input_type->super.size;
  set_call(operation, TORII_SCATTER, bytes, root);
  set_input(operation, input, (size_t)input_count * (size_t)ompi_comm_size(comm), input_type, false);
  if (result != MPI_IN_PLACE) {
    set_result(operation, result, (size_t)result_count, result_type);
    return ANSWER_TAKE;
  }
  operation->result_in_input = true; /* it is there already */
  operation->own_offset = bytes * (size_t)root;
  return ANSWER_TAKE;
}
