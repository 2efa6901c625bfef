/* SPDX-License-Identifier: Apache-2.0
 * The named collectives. Included by torii.h.
 *
 * For all of them: every rank of the team makes the call, in the same order relative to the team's other calls, with
 * equal count, type, op and root. Lengths are in elements of `type`. The call blocks until this rank's result is there
 * and its input may be written again, up to the team's deadline. Other ranks may still be in the call. With count 0 it
 * returns at once. In a group (torii_group_begin) it joins, and torii_group_end makes it. torii_start does the same
 * without blocking, torii_prepare for many times. One thread of a rank calls a team at a time, unless the team was made
 * with many_callers.
 *
 * Input and result are one memory (in place) or do not overlap; each rank chooses. They may be any memory of the CPU;
 * memory of torii_allocate is fastest.
 *
 * Statuses: TORII_INVALID_ARGUMENT: a needed buffer is NULL, a type or op is unknown, the op is not defined for the
 * type, a length overflows, root is no rank. TORII_MISMATCH: ranks make different calls, or another rank refused this
 * one. TORII_UNSUPPORTED: a forced algorithm cannot run the call. TORII_NO_RESOURCE: no memory.
 * TORII_TIMEOUT, TORII_PEER_LOST, TORII_ABORTED, TORII_TRANSPORT and TORII_POISONED: the team has failed, on all ranks.
 * torii_last_error() has the reason. */
#ifndef TORII_COLLECTIVES_H
#define TORII_COLLECTIVES_H

#include <torii/types.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns when all ranks of the team have called it. */
TORII_API torii_status torii_barrier(torii_team* team);
/* `count` elements at `buffer` of rank `root` are copied to `buffer` of all others. */
TORII_API torii_status torii_broadcast(torii_team* team, void* buffer, size_t count, torii_type type, int root);
/* result[i] at `root` is input[i] of all ranks, combined by `op`; `count` elements each. `result` is not looked at on
 * other ranks. In place at the root: result == input. */
TORII_API torii_status torii_reduce(torii_team* team, const void* input, void* result, size_t count, torii_type type,
                                    torii_op op, int root);
/* The same, with the result on all ranks: the same bits on each. In place: result == input. */
TORII_API torii_status torii_allreduce(torii_team* team, const void* input, void* result, size_t count, torii_type type,
                                       torii_op op);
/* `input` has `count` elements, `result` ranks * count: block r of all results is the input of rank r. In place: input
 * is the own block of `result`. */
TORII_API torii_status torii_all_gather(torii_team* team, const void* input, void* result, size_t count,
                                        torii_type type);
/* `input` has ranks * count elements, `result` `count`: rank r gets block r of all inputs, combined by `op`. In place:
 * result is the own block of `input`. */
TORII_API torii_status torii_reduce_scatter(torii_team* team, const void* input, void* result, size_t count,
                                            torii_type type, torii_op op);
/* The same with blocks of unequal lengths, one after the other in `input`. `counts[i]`: elements of rank i's block; as
 * many as ranks, the same on all of them; 0 is allowed. */
TORII_API torii_status torii_reduce_scatterv(torii_team* team, const void* input, void* result, const size_t* counts,
                                             torii_type type, torii_op op);
/* result[i] of rank r is input[i] of ranks 0 to r, combined by `op` in this order; `count` elements each. In place:
 * result == input. */
TORII_API torii_status torii_scan(torii_team* team, const void* input, void* result, size_t count, torii_type type,
                                  torii_op op);
/* The same for ranks 0 to r - 1. Rank 0's `result` is left as it is, and may be NULL. */
TORII_API torii_status torii_exscan(torii_team* team, const void* input, void* result, size_t count, torii_type type,
                                    torii_op op);
/* `input` and `result` have ranks * count elements: block i of rank r's input becomes block r of rank i's result. In
 * place: result == input; a copy of the input is made, unless blocks are short. */
TORII_API torii_status torii_alltoall(torii_team* team, const void* input, void* result, size_t count, torii_type type);
/* `input` of `root` has ranks * count elements: rank i gets block i in `result`, `count` elements. `input` is not
 * looked at on other ranks. In place at the root: result is the own block of `input`. */
TORII_API torii_status torii_scatter(torii_team* team, const void* input, void* result, size_t count, torii_type type,
                                     int root);
/* Back: `result` of `root` gets the `count` elements at `input` of rank i as block i. `result` is not looked at on
 * other ranks. In place at the root: input is the own block of `result`. */
TORII_API torii_status torii_gather(torii_team* team, const void* input, void* result, size_t count, torii_type type,
                                    int root);

/* With blocks of unequal lengths. counts[i] elements go to rank i, or come from rank i. displacements[i] is the place
 * of that block in the buffer, in elements; displacements NULL: one block after the other. Arrays have an entry for
 * each rank, are read before the call returns or joins a group, and may be freed then. Both ends of a pair give one
 * length; otherwise TORII_MISMATCH. A rank waits only for ranks with which it shares a block that is not empty. Lists
 * of addresses in place of displacements: torii/block_lists.h. */

/* `count` is not needed: each pair has its own length in both arrays of counts. */
TORII_API torii_status torii_alltoallv(torii_team* team, const void* input, const size_t* input_counts,
                                       const size_t* input_displacements, void* result, const size_t* result_counts,
                                       const size_t* result_displacements, torii_type type);
/* `count` is the length of this rank's block. `input` and its arrays are not looked at but at the root. */
TORII_API torii_status torii_scatterv(torii_team* team, const void* input, const size_t* input_counts,
                                      const size_t* input_displacements, void* result, size_t count, torii_type type,
                                      int root);
/* `count` is the length of this rank's block. `result` and its arrays are not looked at but at the root. */
TORII_API torii_status torii_gatherv(torii_team* team, const void* input, size_t count, void* result,
                                     const size_t* result_counts, const size_t* result_displacements, torii_type type,
                                     int root);
/* `count` is the length of this rank's block, which all ranks get. The arrays are needed on all ranks. */
TORII_API torii_status torii_all_gatherv(torii_team* team, const void* input, size_t count, void* result,
                                         const size_t* result_counts, const size_t* result_displacements,
                                         torii_type type);

#ifdef __cplusplus
}
#endif

#endif
