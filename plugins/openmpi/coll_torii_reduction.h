/* SPDX-License-Identifier: Apache-2.0
 * From MPI's operation and type to torii's kernels, or to a user function that calls Open MPI's. */
#pragma once

#include "plugins/openmpi/coll_torii_call.h"

/* Sets type, op, user function and whether it commutes. False if torii cannot run it. */
bool coll_torii_map_reduction(coll_torii_operation_t* operation, ompi_op_t* op, ompi_datatype_t* type);
