/* SPDX-License-Identifier: Apache-2.0
 * Every operation of MPI that the component takes, once: each has a blocking, a non-blocking and a persistent slot. */
#pragma once

/* X(name, (parameters), (arguments)): MPI's function of this name takes them in front of the communicator. A comma
 * follows each. */
#define COLL_TORII_OPERATIONS(X)                                                                                     \
  X(allgather,                                                                                                       \
    (const void* input, int input_count, ompi_datatype_t* input_type, void* result, int result_count,                \
     ompi_datatype_t* result_type, ),                                                                                \
    (input, input_count, input_type, result, result_count, result_type, ))                                           \
  X(allgatherv,                                                                                                      \
    (const void* input, int input_count, ompi_datatype_t* input_type, void* result, const int* counts,               \
     const int* places, ompi_datatype_t* result_type, ),                                                             \
    (input, input_count, input_type, result, counts, places, result_type, ))                                         \
  X(allreduce, (const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op, ),                 \
    (input, result, count, type, op, ))                                                                              \
  X(alltoall,                                                                                                        \
    (const void* input, int input_count, ompi_datatype_t* input_type, void* result, int result_count,                \
     ompi_datatype_t* result_type, ),                                                                                \
    (input, input_count, input_type, result, result_count, result_type, ))                                           \
  X(alltoallv,                                                                                                       \
    (const void* input, const int* input_counts, const int* input_places, ompi_datatype_t* input_type, void* result, \
     const int* result_counts, const int* result_places, ompi_datatype_t* result_type, ),                            \
    (input, input_counts, input_places, input_type, result, result_counts, result_places, result_type, ))            \
  X(alltoallw,                                                                                                       \
    (const void* input, const int* input_counts, const int* input_places, ompi_datatype_t* const* input_types,       \
     void* result, const int* result_counts, const int* result_places, ompi_datatype_t* const* result_types, ),      \
    (input, input_counts, input_places, input_types, result, result_counts, result_places, result_types, ))          \
  X(barrier, (), ())                                                                                                 \
  X(bcast, (void* buffer, int count, ompi_datatype_t* type, int root, ), (buffer, count, type, root, ))              \
  X(exscan, (const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op, ),                    \
    (input, result, count, type, op, ))                                                                              \
  X(gather,                                                                                                          \
    (const void* input, int input_count, ompi_datatype_t* input_type, void* result, int result_count,                \
     ompi_datatype_t* result_type, int root, ),                                                                      \
    (input, input_count, input_type, result, result_count, result_type, root, ))                                     \
  X(gatherv,                                                                                                         \
    (const void* input, int input_count, ompi_datatype_t* input_type, void* result, const int* counts,               \
     const int* places, ompi_datatype_t* result_type, int root, ),                                                   \
    (input, input_count, input_type, result, counts, places, result_type, root, ))                                   \
  X(reduce, (const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op, int root, ),          \
    (input, result, count, type, op, root, ))                                                                        \
  X(reduce_scatter, (const void* input, void* result, const int* counts, ompi_datatype_t* type, ompi_op_t* op, ),    \
    (input, result, counts, type, op, ))                                                                             \
  X(reduce_scatter_block, (const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op, ),      \
    (input, result, count, type, op, ))                                                                              \
  X(scan, (const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op, ),                      \
    (input, result, count, type, op, ))                                                                              \
  X(scatter,                                                                                                         \
    (const void* input, int input_count, ompi_datatype_t* input_type, void* result, int result_count,                \
     ompi_datatype_t* result_type, int root, ),                                                                      \
    (input, input_count, input_type, result, result_count, result_type, root, ))                                     \
  X(scatterv,                                                                                                        \
    (const void* input, const int* counts, const int* places, ompi_datatype_t* input_type, void* result,             \
     int result_count, ompi_datatype_t* result_type, int root, ),                                                    \
    (input, counts, places, input_type, result, result_count, result_type, root, ))

/* A list of the table without its parentheses. */
#define COLL_TORII_LIST(...) __VA_ARGS__

typedef enum coll_torii_kind_t {
#define COLL_TORII_KIND(name, parameters, arguments) KIND_##name,
  COLL_TORII_OPERATIONS(COLL_TORII_KIND)
#undef COLL_TORII_KIND
      KIND_COUNT
} coll_torii_kind_t;

typedef enum { FORM_BLOCKING, FORM_NON_BLOCKING, FORM_PERSISTENT, FORM_COUNT } coll_torii_form_t;

/* Why a call went to the component below. */
typedef enum {
  REASON_BEFORE_TEAM, /* the communicator has no team yet */
  REASON_NO_TEAM,     /* the members have agreed to have none */
  REASON_REDUCTION,   /* its operation does not go with its type in torii */
  REASON_INTERNAL,    /* it may be Open MPI's own */
  REASON_UNSERVED,    /* torii could not run it: its algorithm cannot, or it could not be prepared */
  REASON_COUNT
} coll_torii_reason_t;
