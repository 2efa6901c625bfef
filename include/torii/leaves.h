/* SPDX-License-Identifier: Apache-2.0
 * Sums over leaves: the same bits at any number of ranks. Included by torii.h; docs/determinism.md explains it.
 *
 * A job has L logical leaves, numbered from 0: micro-batches, say, each with a vector. Every rank holds the vectors of
 * some neighbouring leaves. The result combines all leaves by one expression, E(0, L) of docs/determinism.md. Its bits
 * depend on the leaves and the operation alone. They do not depend on the number of ranks, on how many leaves each rank
 * has, or on the setting DETERMINISM. If every rank has one leaf, the result is that of the call without leaves on a
 * team that is `canonical`. */
#ifndef TORII_LEAVES_H
#define TORII_LEAVES_H

#include <torii/types.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which leaves each rank of a team has. */
typedef struct torii_leaves torii_leaves;

/* Collective over the team, blocking. This rank has the `count` leaves from leaf `first` on. `leaves` is the number of
 * all leaves, which is the same on all ranks, from 1 to 2147483647. Rank 0 has the first ones, rank 1 those that
 * follow, and so on; torii_split deals them so. Ranks may have any number of leaves, also none; `first` is then not
 * looked at. TORII_INVALID_ARGUMENT on all ranks, with one text, if numbers differ, leaves are missing or two ranks
 * have the same; the team goes on. On an error *handle is NULL. Not in a group. The team is used as by a call, and by
 * this thread alone. Until it is destroyed, the team keeps intervals, about 12 bytes for each rank and 64 for each
 * subtree. The team also keeps the memory of operands that calls have needed at once. The same intervals again take no
 * memory. */
TORII_API torii_status torii_leaves_create(torii_team* team, size_t leaves, size_t first, size_t count,
                                           torii_leaves** handle);
/* Local, before or after the team is destroyed; no call that has not ended may use it. NULL is TORII_OK. */
TORII_API torii_status torii_leaves_destroy(torii_leaves* handle);

/* Writes the vector of a leaf of this rank to `out`, as many elements as `input` would have for it. The function is
 * called in ascending order of leaves by the thread that starts the call, which folds the leaves as they come. Of L
 * leaves that thread keeps log2(L) + 1 vectors at most, and the operands of this rank, 2 log2(L) at most. Other ranks
 * wait meanwhile under their deadlines, and so do other threads that use the team, if it has many_callers. Leaves that
 * take long are better written to an array before the call. Must not call torii or throw. Not in a group. A number
 * other than 0 ends the call with TORII_ABORTED here. The team then fails if others made that call, and if the call is
 * persistent. */
typedef int (*torii_leaf_function)(size_t leaf, void* out, void* data);

/* Like the functions of torii/collectives.h without `_leaves`, on the handle's team and with its rules; if it has been
 * destroyed, they return TORII_INVALID_ARGUMENT. `input` has the vectors of this rank's leaves in order, one every
 * `stride` elements; 0: one right behind the other. TORII_AVG divides by the number of leaves; TORII_PREMUL_SUM is
 * TORII_INVALID_ARGUMENT. Small floats are rounded once. In place, where this rank has one leaf: as without leaves
 * (allreduce and reduce: result == input; reduce_scatter: result is the own block of input). With several, the result
 * may be anywhere in the input, and with none there is no input.
 * torii_call.leaves does the same for torii_run, torii_start, torii_prepare, torii_expect and torii_choose, where
 * torii_call.leaf may write the leaves. `rank` of torii_operand is then the number of a leaf. torii_expect asks for the
 * elements of all leaves at once and builds the expression over all of them, so it takes memory for each leaf. */
TORII_API torii_status torii_allreduce_leaves(const torii_leaves* leaves, const void* input, size_t stride,
                                              void* result, size_t count, torii_type type, torii_op op);
TORII_API torii_status torii_reduce_leaves(const torii_leaves* leaves, const void* input, size_t stride, void* result,
                                           size_t count, torii_type type, torii_op op, int root);
/* A leaf has ranks * count elements. Who has which block depends on the number of ranks; its bits do not. */
TORII_API torii_status torii_reduce_scatter_leaves(const torii_leaves* leaves, const void* input, size_t stride,
                                                   void* result, size_t count, torii_type type, torii_op op);

#ifdef __cplusplus
}
#endif

#endif
