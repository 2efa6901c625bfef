/* SPDX-License-Identifier: Apache-2.0
 * Staging: memory that replaces the caller's, and the moves of elements between the two. */
#pragma once

#include "plugins/openmpi/coll_torii_call.h"

/* Copies the arrays of the moves: programs let go of them while an operation is in flight (mpi4py does), though MPI
 * forbids it. */
void coll_torii_keep_arrays(coll_torii_operation_t* operation);
/* On failure `status` tells; the operation can be released all the same. */
void coll_torii_acquire(coll_torii_operation_t* operation);
void coll_torii_load(coll_torii_operation_t* operation);
void coll_torii_store(coll_torii_operation_t* operation);
void coll_torii_release(coll_torii_operation_t* operation);
/* Frees the staging that is kept for further calls. */
void coll_torii_free_staging(void);
