/* SPDX-License-Identifier: Apache-2.0
 * The functions that Open MPI calls, one for each operation and form. */
#pragma once

#include "plugins/openmpi/coll_torii_module.h"

void coll_torii_set_blocking(mca_coll_base_module_t* module);
void coll_torii_set_non_blocking(mca_coll_base_module_t* module);
void coll_torii_set_persistent(mca_coll_base_module_t* module);
/* Frees the persistent operations that wait for other ranks. Called before the team is destroyed. */
void coll_torii_forget_persistent(coll_torii_module_t* module);
