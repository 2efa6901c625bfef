/* SPDX-License-Identifier: Apache-2.0
 * The use of a communicator from which on it gets teams. A team costs as much as it saves in some hundreds of short
 * calls, and many communicators are made, used once or twice, and freed. Their calls stay below. */
#pragma once

#include "plugins/openmpi/coll_torii_module.h"

/* coll_torii_pays() counts a blocking call that torii would take, and tells whether the communicator had been used
 * enough before it. A non-blocking call is only counted: the next blocking one asks whether its team pays. Whatever the
 * delay is, it pays only after such a call. All ranks get the same answer. MPI demands the same order of operations on
 * all ranks of a communicator, and the answer depends on nothing else but lengths that are equal on all ranks. */
bool coll_torii_pays(coll_torii_module_t* module, const coll_torii_operation_t* operation);
bool coll_torii_pays_in_background(const coll_torii_module_t* module);
void coll_torii_count_in_background(coll_torii_module_t* module, const coll_torii_operation_t* operation);

/* Runs around each blocking call of the component below, whose algorithms may call operations of the communicator. */
static inline bool coll_torii_enter_below(coll_torii_module_t* module) {
  const bool was_below = module->is_below;
  module->is_below = true;
  return was_below;
}

static inline void coll_torii_leave_below(coll_torii_module_t* module, bool was_below) { module->is_below = was_below; }
