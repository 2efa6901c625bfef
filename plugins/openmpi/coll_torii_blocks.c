/* SPDX-License-Identifier: Apache-2.0
 * The slots of blocking operations whose blocks differ from rank to rank. Where all blocks are equal, a call without
 * bytes waits for nobody; where lengths differ no rank knows all of them, and every call is torii's. */
#include "plugins/openmpi/coll_torii.h"

static int alltoall(const void* input, int input_count, ompi_datatype_t* input_type, void* result, int result_count,
                    ompi_datatype_t* result_type, struct ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  if (coll_torii_is_empty(result_count, result_type)) return OMPI_SUCCESS;
  if (coll_torii_begin(&operation, module, comm)) {
    coll_torii_prepare_alltoall(&operation, input, input_count, input_type, result, result_count, result_type,
                                ompi_comm_size(comm));
    if (coll_torii_run(&operation, module, comm, &status)) return status;
  }
  coll_torii_count_left(module, KIND_ALLTOALL);
  return module->below_alltoall(input, input_count, input_type, result, result_count, result_type, comm,
                                module->below_alltoall_module);
}

static int alltoallv(const void* input, const int* input_counts, const int* input_places, ompi_datatype_t* input_type,
                     void* result, const int* result_counts, const int* result_places, ompi_datatype_t* result_type,
                     struct ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  if (coll_torii_begin(&operation, module, comm)) {
    coll_torii_prepare_alltoallv(&operation, input, input_counts, input_places, input_type, result, result_counts,
                                 result_places, result_type, ompi_comm_size(comm));
    if (coll_torii_run(&operation, module, comm, &status)) return status;
  }
  coll_torii_count_left(module, KIND_ALLTOALLV);
  return module->below_alltoallv(input, input_counts, input_places, input_type, result, result_counts, result_places,
                                 result_type, comm, module->below_alltoallv_module);
}

static int gather(const void* input, int input_count, ompi_datatype_t* input_type, void* result, int result_count,
                  ompi_datatype_t* result_type, int root, struct ompi_communicator_t* comm,
                  mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  const bool is_root = ompi_comm_rank(comm) == root;
  if (is_root ? coll_torii_is_empty(result_count, result_type) : coll_torii_is_empty(input_count, input_type)) {
    return OMPI_SUCCESS;
  }
  if (coll_torii_begin(&operation, module, comm)) {
    coll_torii_prepare_gather(&operation, input, input_count, input_type, result, result_count, result_type, root,
                              comm);
    if (coll_torii_run(&operation, module, comm, &status)) return status;
  }
  coll_torii_count_left(module, KIND_GATHER);
  return module->below_gather(input, input_count, input_type, result, result_count, result_type, root, comm,
                              module->below_gather_module);
}

static int gatherv(const void* input, int input_count, ompi_datatype_t* input_type, void* result, const int* counts,
                   const int* places, ompi_datatype_t* result_type, int root, struct ompi_communicator_t* comm,
                   mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  if (coll_torii_begin(&operation, module, comm)) {
    coll_torii_prepare_gatherv(&operation, input, input_count, input_type, result, counts, places, result_type, root,
                               comm);
    if (coll_torii_run(&operation, module, comm, &status)) return status;
  }
  coll_torii_count_left(module, KIND_GATHERV);
  return module->below_gatherv(input, input_count, input_type, result, counts, places, result_type, root, comm,
                               module->below_gatherv_module);
}

static int scatter(const void* input, int input_count, ompi_datatype_t* input_type, void* result, int result_count,
                   ompi_datatype_t* result_type, int root, struct ompi_communicator_t* comm,
                   mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  const bool is_root = ompi_comm_rank(comm) == root;
  if (is_root ? coll_torii_is_empty(input_count, input_type) : coll_torii_is_empty(result_count, result_type)) {
    return OMPI_SUCCESS;
  }
  if (coll_torii_begin(&operation, module, comm)) {
    coll_torii_prepare_scatter(&operation, input, input_count, input_type, result, result_count, result_type, root,
                               comm);
    if (coll_torii_run(&operation, module, comm, &status)) return status;
  }
  coll_torii_count_left(module, KIND_SCATTER);
  return module->below_scatter(input, input_count, input_type, result, result_count, result_type, root, comm,
                               module->below_scatter_module);
}

static int scatterv(const void* input, const int* counts, const int* places, ompi_datatype_t* input_type, void* result,
                    int result_count, ompi_datatype_t* result_type, int root, struct ompi_communicator_t* comm,
                    mca_coll_base_module_t* base) {
  coll_torii_module_t* const module = (coll_torii_module_t*)base;
  coll_torii_operation_t operation;
  int status;
  if (coll_torii_begin(&operation, module, comm)) {
    coll_torii_prepare_scatterv(&operation, input, counts, places, input_type, result, result_count, result_type, root,
                                comm);
    if (coll_torii_run(&operation, module, comm, &status)) return status;
  }
  coll_torii_count_left(module, KIND_SCATTERV);
  return module->below_scatterv(input, counts, places, input_type, result, result_count, result_type, root, comm,
                                module->below_scatterv_module);
}

void coll_torii_set_blocks(mca_coll_base_module_t* module) {
#define SET(name) module->coll_##name = name;
  COLL_TORII_BLOCKS(SET)
#undef SET
}
