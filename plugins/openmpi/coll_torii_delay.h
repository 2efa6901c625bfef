/* SPDX-License-Identifier: Apache-2.0
 * The use of a communicator from which on it gets teams. A team costs as much as it saves in some hundreds of short
 * calls, and many communicators are made, used once or twice, and freed. Their calls stay below. */
#pragma once

#include "plugins/openmpi/coll_torii_elements.h"
#include "plugins/openmpi/coll_torii_module.h"
#include "plugins/openmpi/coll_torii_state.h"

/* So many bytes count as one short call more. With perf/results/2026-11-26-inside-open-mpi.txt: torii saves 0.1 to 0.2
 * us of a short call with 2 ranks and 1 to 2 us with 4 on two CPUs. It saves about ten times as much of 4 KiB. */
#define BYTES_LIKE_A_CALL 512
/* The guess for a call whose length not all ranks know. */
#define BYTES_UNKNOWN 4096
#define COLL_TORII_USE_UNKNOWN (1 + BYTES_UNKNOWN / BYTES_LIKE_A_CALL)

/* The number that a call counts, equal on all ranks, since MPI demands equal lengths. An empty call counts nothing:
 * MPI's layer ends it early on some ranks. Calls of which no rank knows all lengths it never ends early. */
static inline int64_t coll_torii_use_of(int count, const ompi_datatype_t* type) {
  const size_t bytes = (size_t)count * type->super.size;
  return bytes == 0 ? 0 : 1 + (int64_t)(bytes / BYTES_LIKE_A_CALL);
}
static inline int64_t coll_torii_use_of_blocks(const int* counts, int blocks, const ompi_datatype_t* type) {
  for (int block = 0; block < blocks; ++block) {
    if (!coll_torii_is_empty(counts[block], type)) return COLL_TORII_USE_UNKNOWN;
  }
  return 0;
}

/* By the arguments of the operation (coll_torii_operations.h). */
#define COLL_TORII_USE_allgather coll_torii_use_of(result_count, result_type)
#define COLL_TORII_USE_allgatherv coll_torii_use_of_blocks(counts, ompi_comm_size(comm), result_type)
#define COLL_TORII_USE_allreduce coll_torii_use_of(count, type)
#define COLL_TORII_USE_alltoall coll_torii_use_of(result_count, result_type)
#define COLL_TORII_USE_alltoallv COLL_TORII_USE_UNKNOWN
#define COLL_TORII_USE_alltoallw COLL_TORII_USE_UNKNOWN
#define COLL_TORII_USE_barrier 1
#define COLL_TORII_USE_bcast coll_torii_use_of(count, type)
#define COLL_TORII_USE_exscan coll_torii_use_of(count, type)
#define COLL_TORII_USE_gather                                                  \
  (ompi_comm_rank(comm) == root ? coll_torii_use_of(result_count, result_type) \
                                : coll_torii_use_of(input_count, input_type))
#define COLL_TORII_USE_gatherv COLL_TORII_USE_UNKNOWN
#define COLL_TORII_USE_reduce coll_torii_use_of(count, type)
#define COLL_TORII_USE_reduce_scatter coll_torii_use_of_blocks(counts, ompi_comm_size(comm), type)
#define COLL_TORII_USE_reduce_scatter_block coll_torii_use_of(count, type)
#define COLL_TORII_USE_scan coll_torii_use_of(count, type)
#define COLL_TORII_USE_scatter                                               \
  (ompi_comm_rank(comm) == root ? coll_torii_use_of(input_count, input_type) \
                                : coll_torii_use_of(result_count, result_type))
#define COLL_TORII_USE_scatterv COLL_TORII_USE_UNKNOWN

/* Whether a blocking call comes before the communicator has been used enough; then it is counted. All ranks get the
 * same answer: MPI demands one order of operations on all ranks of a communicator, and the answer depends on nothing
 * else but what they count. */
static inline bool coll_torii_is_early(coll_torii_module_t* module, int64_t use) {
  if (module->blocking_use >= coll_torii_state.delay) return false;
  module->blocking_use += use;
  return true;
}

/* Non-blocking calls are only counted. The next blocking one asks this: whatever the delay is, their team pays only
 * after such a call. */
static inline bool coll_torii_pays_in_background(const coll_torii_module_t* module) {
  return module->background_use > 0 && module->states[TEAM_BACKGROUND] == STATE_NEW &&
         module->background_use >= coll_torii_state.delay;
}

/* Runs around each blocking call of the component below, whose algorithms may call operations of the communicator. */
static inline bool coll_torii_enter_below(coll_torii_module_t* module) {
  const bool was_below = module->is_below;
  module->is_below = true;
  return was_below;
}

static inline void coll_torii_leave_below(coll_torii_module_t* module, bool was_below) { module->is_below = was_below; }
