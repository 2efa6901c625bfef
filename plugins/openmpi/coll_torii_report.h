/* SPDX-License-Identifier: Apache-2.0
 * Messages to the user, error codes for MPI, and the counts of calls that torii took or left to the component below. */
#pragma once

#include "plugins/openmpi/coll_torii_openmpi.h"
#include "plugins/openmpi/coll_torii_operations.h"
#include "plugins/openmpi/coll_torii_state.h"

#include <torii/torii.h>

/* Prints a message if the parameter `verbose` is `level` or higher. */
void coll_torii_say(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the counts of all operations, why calls were left, and the time of set-up, at level 1. */
void coll_torii_say_counts(void);
int64_t coll_torii_now_ns(void);
int coll_torii_error_of(torii_status status);

/* On x86 an atomic addition waits for all earlier stores, also for a signal to a peer. So the addition is atomic only
 * if several threads may count. Inline, because it is much of the work of leaving a call. */
static inline void coll_torii_count_one(_Atomic int64_t* counter) {
  if (opal_using_threads()) {
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
  } else {
    const int64_t counted = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, counted + 1, memory_order_relaxed);
  }
}
static inline void coll_torii_count_taken(coll_torii_form_t form, coll_torii_kind_t kind) {
  coll_torii_count_one(&coll_torii_state.taken[form][kind]);
}
static inline void coll_torii_count_left(coll_torii_reason_t reason, coll_torii_form_t form, coll_torii_kind_t kind) {
  coll_torii_count_one(&coll_torii_state.left[reason][form][kind]);
}
