/* SPDX-License-Identifier: Apache-2.0
 * From the arguments of MPI to a call that coll_torii_begin() has cleared: coll_torii_describe_allreduce() and so on.
 * These functions take no memory but `lengths`, move nothing and wait for nobody. */
#pragma once

#include "plugins/openmpi/coll_torii_call.h"

#define COLL_TORII_DESCRIBE(name, parameters, arguments)                            \
  coll_torii_answer_t coll_torii_describe_##name(coll_torii_operation_t* operation, \
                                                 COLL_TORII_LIST parameters struct ompi_communicator_t* comm);
COLL_TORII_OPERATIONS(COLL_TORII_DESCRIBE)
#undef COLL_TORII_DESCRIBE
