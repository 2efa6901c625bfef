/* SPDX-License-Identifier: Apache-2.0
 * Collectives whose blocks are in places of their own: lists of addresses. Included by torii.h.
 *
 * blocks[i] is the address of the block that goes to rank i, or comes from rank i. It may be NULL if the block is
 * empty. counts[i] is its length in elements; counts NULL: every block has `count` elements. Nothing is packed: each
 * block is sent from and received at its address. The arrays are copied when the call starts or is prepared.
 *
 * These calls are those with unequal blocks (torii_alltoallv and so on), and have their errors. A rank may give a list
 * where another one gives displacements, or a list on one side only with torii_call. The fields are `unequal`, then
 * `input_blocks` in place of `input` and input_displacements, and `result_blocks` in place of `result` and
 * result_displacements. The replaced fields are NULL. Such calls never pair with calls of equal blocks such as
 * torii_alltoall.
 *
 * In place: an alltoall whose blocks for and from a rank have one address copies its input first. Elsewhere only the
 * own block may be in place. Otherwise blocks do not overlap. */
#ifndef TORII_BLOCK_LISTS_H
#define TORII_BLOCK_LISTS_H

#include <torii/types.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This rank's block at `input` has `count` elements and becomes block `rank` of all results. */
TORII_API torii_status torii_all_gather_list(torii_team* team, const void* input, size_t count, void* const* results,
                                             const size_t* result_counts, torii_type type);
/* `count` is not looked at if both arrays of counts are given. */
TORII_API torii_status torii_alltoall_list(torii_team* team, const void* const* inputs, const size_t* input_counts,
                                           void* const* results, const size_t* result_counts, size_t count,
                                           torii_type type);
/* `inputs` and `input_counts` are not looked at but at the root. `count` is the length of this rank's block. */
TORII_API torii_status torii_scatter_list(torii_team* team, const void* const* inputs, const size_t* input_counts,
                                          void* result, size_t count, torii_type type, int root);
/* `results` and `result_counts` are not looked at but at the root. `count` is the length of this rank's block. */
TORII_API torii_status torii_gather_list(torii_team* team, const void* input, size_t count, void* const* results,
                                         const size_t* result_counts, torii_type type, int root);

#ifdef __cplusplus
}
#endif

#endif
