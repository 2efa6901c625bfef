/* SPDX-License-Identifier: Apache-2.0
 * Vectors with holes that torii moves part by part between the caller's memory and its slots. Elements are packed and
 * unpacked while other parts are on their way, without staging. */
#pragma once

#include "plugins/openmpi/coll_torii_call.h"

bool coll_torii_moves_by_parts(size_t count, const ompi_datatype_t* type, int ranks);
/* For an operation whose store is MOVE_PARTS. False if there is no memory. */
bool coll_torii_begin_access(coll_torii_operation_t* operation);
void coll_torii_end_access(coll_torii_operation_t* operation);
