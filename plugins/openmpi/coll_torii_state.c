/* SPDX-License-Identifier: Apache-2.0
 * The state before Open MPI reads the parameters. */
#include "plugins/openmpi/coll_torii_state.h"

coll_torii_state_t coll_torii_state = {.priority = 90, .stream = -1};
