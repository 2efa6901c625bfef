/* SPDX-License-Identifier: Apache-2.0
 * The C interface of torii: deterministic collectives that bypass the MPI layers.
 *
 * Every function that can fail returns a torii_status; torii_last_error() tells the calling thread why. Structs begin
 * with their size, so that a newer library reads an older caller right: set `size = sizeof(the struct)` and zero the
 * rest. Thread safety, fork, progress and memory: docs/embedding.md. */
#ifndef TORII_TORII_H
#define TORII_TORII_H

#include <torii/block_lists.h>
#include <torii/collectives.h>
#include <torii/leaves.h>
#include <torii/send_recv.h>
#include <torii/types.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library, such as "0.1.0". From any thread, like the next one. */
TORII_API const char* torii_version(void);
/* The name of a status, such as "invalid_argument". Static text. */
TORII_API const char* torii_status_name(torii_status status);
/* The reason of this thread's last failed call; valid until its next failing call. Never NULL. */
TORII_API const char* torii_last_error(void);
/* The name of an algorithm that the setting ALGORITHM and torii_team_options.algorithm accept, besides "auto". Indices
 * count from 0; NULL behind the last one. */
TORII_API const char* torii_algorithm_name(int index);
/* Receives the library's lines at the level of the setting LOG (error, warn, info, debug: 0 to 3) instead of stderr.
 * NULL: back to stderr. One call at a time, from any thread that uses the library. */
typedef void (*torii_log)(int level, const char* message, void* data);
TORII_API void torii_set_log(torii_log log, void* data);
/* ---- context --------------------------------------------------------------------------------------------------------
 */

/* The embedder's way to join: gathers `bytes` bytes of every rank into `all` (ranks * bytes, in rank order) on every
 * rank. Returns 0 on success. It is called during torii_context_create and torii_team_create only, by the calling
 * thread. A number other than 0 and an exception are TORII_TRANSPORT. */
typedef int (*torii_exchange)(const void* mine, void* all, size_t bytes, void* data);

typedef struct torii_context_options {
  size_t size;
  /* This rank and the number of ranks, which are needed with `exchange`. Without it, `ranks` above 0 replaces the
   * launcher's numbers, and the ranks meet as RENDEZVOUS or MASTER_ADDR says. */
  int rank;
  int ranks;
  torii_exchange exchange; /* NULL: join through what the launcher offers (torii-run); no launcher: a job of one rank */
  void* exchange_data;
  const char* settings; /* "NAME=value" lines that override the environment, e.g. "ENGINES=2\nTIMEOUT=5"; may be NULL */
  /* Called again and again (seldom while the thread spins) by a thread that waits in torii_run, in a named operation or
   * for requests. So the embedder's other work goes on. The function may make calls on other teams of the context than
   * the one waited on, but must not wait. A sleeping thread calls it once between two sleeps of 50 us, to each of which
   * the kernel adds about as much. May be NULL. */
  void (*idle)(void* idle_data);
  void* idle_data;
  /* An earlier context of this process, which may be destroyed before or after the new one. Memory that was allocated
   * or registered with it is then also the new context's. For jobs that grow or replace a rank; ranks may differ in it.
   * NULL: memory of its own. */
  torii_context* memory_of;
} torii_context_options;

/* Joins the job: collective over its ranks, and blocks until all have come, up to the setting TIMEOUT. `options` may be
 * NULL. On an error *context is NULL, mostly on all ranks. One thread at a time. */
TORII_API torii_status torii_context_create(const torii_context_options* options, torii_context** context);
/* Not collective, waits for nobody. Teams and requests of the context must be gone: otherwise TORII_INVALID_ARGUMENT.
 * Its memory is unmapped. NULL is TORII_OK. */
TORII_API torii_status torii_context_destroy(torii_context* context);
/* This rank in the job, from 0, and the number of ranks; -1 for NULL. From any thread, as all questions about a context
 * that follow. */
TORII_API int torii_context_rank(const torii_context* context);
TORII_API int torii_context_ranks(const torii_context* context);
/* Nodes are the sets of ranks that share memory, numbered from 0 in the order of their first ranks. */
TORII_API int torii_context_nodes(const torii_context* context);
/* The node of a rank and the name of its host; -1 and NULL if there is no such rank. The name lives as long as the
 * context. */
TORII_API int torii_context_node(const torii_context* context, int rank);
TORII_API const char* torii_context_host(const torii_context* context, int rank);
/* This rank's place among the ranks of its node, which is 0 for the first of them, and their number. */
TORII_API int torii_context_local_rank(const torii_context* context);
TORII_API int torii_context_local_ranks(const torii_context* context);
/* `bytes` of memory that peers on the node map: the fastest operand there is. 64-byte aligned, zeroed. Shared with a
 * forked child too, whose stores reach this rank and its peers. Not collective; from any thread, as the next three.
 * TORII_NO_RESOURCE: the machine or the setting ARENA has no more. */
TORII_API torii_status torii_allocate(torii_context* context, size_t bytes, void** address);
/* Gives it back, when no call uses it. NULL is TORII_OK; an address from elsewhere is TORII_NOT_REGISTERED. */
TORII_API torii_status torii_free(torii_context* context, void* address);
/* Flags of torii_register. */
typedef enum torii_register_flags {
  /* Peers on the node get to reach the memory in place, as they do memory of torii_allocate. Its pages, whole ones at
   * both ends, are replaced by shared ones with the same address and the same contents. Private anonymous memory only:
   * malloc, new, mmap. Whoever else writes on these pages meanwhile: docs/embedding.md. */
  TORII_REGISTER_ADOPT = 1
} torii_register_flags;
/* Makes [address, address + bytes) of the caller known; not collective. Without flags nothing changes on shared memory.
 * Ranges may overlap. A failed call has changed nothing. */
TORII_API torii_status torii_register(torii_context* context, void* address, size_t bytes, unsigned flags,
                                      torii_region** region);
/* Before the memory is freed, moved or unmapped, and when no call uses it: adopted pages become private again, contents
 * kept. The region is gone whatever the status. Destroying the context does the same to all that is left. */
TORII_API torii_status torii_deregister(torii_context* context, torii_region* region);
/* Bytes put by each engine since the context was made; writes at most `engines` values and returns the number of
 * engines. */
TORII_API int torii_engine_bytes(const torii_context* context, uint64_t* bytes, int engines);

/* How often something happened on this rank that a repeated call does without, for all teams of the context. */
typedef struct torii_counters {
  size_t size;
  uint64_t call_plans;      /* calls of a class that its team had not met, or had forgotten (docs/execution.md) */
  uint64_t installed_plans; /* plans that got rings of a channel */
  uint64_t staging_bytes;   /* memory of teams that plans or calls may use for the first time: pages are touched then */
  uint64_t cold_messages;   /* messages stored before the team knew by which way they are faster */
  uint64_t sleeps;          /* times that a waiting thread gave its CPU away until another rank rings, or for 50 us and
                             * more */
  uint64_t hops;            /* waits in which the thread moved to another CPU, away from another rank (setting HOP) */
} torii_counters;
/* Writes them; set counters->size to sizeof(torii_counters) before. From any thread. */
TORII_API torii_status torii_context_counters(const torii_context* context, torii_counters* counters);

/* ---- team ------------------------------------------------------------------------------------------------------- */

typedef struct torii_team_options {
  size_t size;
  const char* topology;    /* "torus:4x4x4", "mesh:8x8", "node:8*4", "node"; NULL: TOPOLOGY */
  const char* algorithm;   /* "auto", "trinaryx3", ...; NULL: the setting ALGORITHM */
  const char* determinism; /* "run" or "canonical"; NULL: the setting DETERMINISM */
  const char* wire;        /* "type" or "f32"; NULL: the setting WIRE */
  size_t segment_bytes;    /* 0: the setting SEGMENT, or the tune table's */
  const char* tune_table;  /* a tune table as JSON text, for this team alone; NULL: that of the setting TUNE_FILE */
  const char* rank_map;    /* who stands where: lines "rank x y z" or "list:..."; NULL: the setting RANK_MAP */
  /* torii_team_create only: the members, as different ranks of the context in the team's order, this rank among them;
   * NULL: all ranks. `exchange` gathers among the members, in their order, during torii_team_create. */
  const int* members;
  int member_count;
  torii_exchange exchange;
  void* exchange_data;
  /* How many operations may be in flight side by side, 1 to 8; 0: the setting CHANNELS. A team whose calls all block is
   * quicker with 1. */
  int channels;
  /* 0: a call while another thread is in one on the team is TORII_INVALID_ARGUMENT, as far as it is noticed, and counts
   * as no call of this rank. Not 0: several threads of this rank may run, start, test and wait at once. They make sure
   * that the order of calls is that of the other ranks. Ranks may differ in this option. A thread that waits lets the
   * others in. Split, survivors, destruction and redistributions still have the team alone. */
  uint64_t many_callers; /* wide, so that the struct grows: older programs leave the 4 bytes behind `channels` unset */
  /* How long a wait of the team without progress may last, above 0 and at most 1000000; 0: the setting TIMEOUT. Ranks
   * may differ; parts and survivors have options of their own. */
  double timeout_seconds;
  /* torii_team_survivors only, equal on all survivors: ranks of the team to leave out though they may live, such as
   * those that torii_team_absent names. */
  const int* without;
  int without_count;
  /* torii_team_survivors only. Between nodes survivors must be more than half of the ranks whose end is not proved, or
   * half with the lowest. Otherwise the others could make a team too. Not 0: they may be fewer. */
  int allow_minority;
  /* torii_team_create with `members` only. Not 0: members that are all on one node find each other by this number, and
   * need no `exchange`. It is equal on all of them. Members that share two calls with one number make them in one
   * order; otherwise numbers are free, and can be used again at once, for up to 16 calls at a time with one lowest
   * member (64 on nodes of few ranks). A member that skips a call which fails may get its reason at its next call with
   * the same number and members. If members are on several nodes, `exchange` is used; without it all members get
   * TORII_UNSUPPORTED. Which of the two is used depends on the members' nodes alone. */
  uint64_t number;
} torii_team_options;

/* Collective over the job, or over the members that the options name: the team of these ranks. Blocks until all have
 * come. Digests of topology, settings, tune data and version are compared: TORII_MISMATCH names the difference. On an
 * error *team is NULL on all ranks. `options` may be NULL. One thread at a time per context, except with members. Ranks
 * that know of one that survivors have left out get TORII_PEER_LOST at once, the others at their deadline. */
TORII_API torii_status torii_team_create(torii_context* context, const torii_team_options* options, torii_team** team);
/* Collective over `team`, blocking: ranks of equal colour (>= 0) form a team, ordered by (key, rank); a negative colour
 * joins none (NULL). All ranks have their part, or none has. */
TORII_API torii_status torii_team_split(torii_team* team, int color, int key, const torii_team_options* options,
                                        torii_team** part);
/* Collective over the living members of a poisoned team, blocking up to its deadline. Makes a new team of the
 * survivors, in the old order, without the ranks that `options` leaves out. All members that come have the team, or
 * none has it for one reason; a call that makes no sense is such a reason. Between nodes a rank that dies or is silent
 * meanwhile may divide them. Then it can be called again, between nodes 4 times in all. A rank that was left out is
 * lost for all teams of the context, which fail if it is a member; it gets TORII_PEER_LOST. */
TORII_API torii_status torii_team_survivors(torii_team* team, const torii_team_options* options,
                                            torii_team** survivors);
/* Not collective; waits for nobody, but between nodes a moment until an abort has left. Operations that this rank has
 * started and that have not ended end with TORII_ABORTED on all ranks. A receive that has met no send ends so on this
 * rank alone. Requests of the team are then still to be tested or waited for, persistent ones to be freed. The team
 * counts as alive until the last request is gone. A second destruction is TORII_INVALID_ARGUMENT until then. A thread
 * in a group of the team must end it first: otherwise TORII_INVALID_ARGUMENT. NULL is TORII_OK. */
TORII_API torii_status torii_team_destroy(torii_team* team);
/* This rank in the team, from 0, and the number of its members; -1 for NULL. From any thread, as the next two. */
TORII_API int torii_team_rank(const torii_team* team);
TORII_API int torii_team_ranks(const torii_team* team);
/* The context of which the team was made; NULL for NULL. */
TORII_API torii_context* torii_team_context(const torii_team* team);
/* The rank in the context of a member of the team; -1 if there is no such member. */
TORII_API int torii_team_context_rank(const torii_team* team, int member);
/* Whether the team works, as this rank knows it. From any thread, also during a call: it waits for nobody and changes
 * nothing; on one node it asks the system once for each member.
 * TORII_OK: nobody is known to be lost, and no call has failed the team.
 * TORII_PEER_LOST: a member is lost; the next call on the team fails, if none has failed yet.
 * TORII_POISONED: another rank has failed the team, and the next call of this rank will say why.
 * Otherwise: what the first failing call of this rank returned.
 * torii_last_error() then has the reason, for this thread. */
TORII_API torii_status torii_team_health(const torii_team* team);
/* The members that are known to be lost, ascending. Writes at most `capacity` of them and returns their number; -1 if
 * team is NULL, there is no memory, or this is a forked child. From any thread. */
TORII_API int torii_team_lost(const torii_team* team, int* members, int capacity);
/* The members that the last TORII_TIMEOUT of this team names, in a call or in torii_team_survivors: they did not come,
 * or did not move. The same on all ranks that got this status. Answers as torii_team_lost. */
TORII_API int torii_team_absent(const torii_team* team, int* members, int capacity);
/* The most messages to different ranks that one alltoall, scatter or gather of this rank has had under way at once on
 * the team. Such messages have begun and not yet arrived. Never more than torii_choice.window says. 0 before the first;
 * -1 for NULL. */
TORII_API int torii_most_in_flight(const torii_team* team);
/* Ends every call on the team, on all ranks, with TORII_ABORTED; `reason` is in its text and may be NULL. Does not
 * wait. From any thread, at any time while the team exists. */
TORII_API torii_status torii_team_abort(torii_team* team, const char* reason);

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* out[i] = left[i] op right[i]; `out` may be the address of `left` or of `right`. Must be associative, and may depend
 * on the order of operands (torii_call.commutes). */
typedef void (*torii_user_function)(const void* left, const void* right, void* out, size_t count, void* data);

/* Moves the bytes [offset_bytes, offset_bytes + bytes) of this rank's vector to `to`, or from `from`. offset_bytes is a
 * multiple of 64. Mostly called in ascending order of parts, by the threads that move the operation, one at a time. The
 * root's vector is only loaded; elsewhere what has been stored may be loaded again. Must not call torii. */
typedef void (*torii_load_function)(void* to, size_t offset_bytes, size_t bytes, void* data);
typedef void (*torii_store_function)(const void* from, size_t offset_bytes, size_t bytes, void* data);

/* One operation. `count` is the vector length in elements for broadcast, reduce, allreduce, scan and exscan, and the
 * length of one rank's block for all_gather, reduce_scatter, alltoall, scatter and gather. In place: input == result,
 * with two exceptions. For all_gather, and gather at the root, input is the own block of result. For reduce_scatter,
 * and scatter at the root, result is the own block of input. An alltoall in place copies the blocks first. Broadcast
 * uses `result` only. Non-roots of reduce and gather need no result, non-roots of scatter no input, rank 0 of exscan no
 * result.
 *
 * Block i of rank r's input of an alltoall becomes block r of rank i's result.
 *
 * Rank r's result of a scan combines the inputs of ranks 0 to r, in this order. In an exscan it combines those of ranks
 * 0 to r - 1. Rank 0's result of an exscan is left as it is.
 *
 * With `unequal`, on all ranks or on none, blocks of alltoall, scatter, gather and all_gather have lengths of their own
 * (alltoallv, scatterv, gatherv, allgatherv). `input_counts[i]` elements go to rank i, `result_counts[i]` come from
 * there. An alltoall needs both and does not look at `count`. The others have one of them: a scatter input_counts at
 * the root, a gather result_counts at the root, an all_gather result_counts on all ranks. `count` is then the length of
 * this rank's own block. Displacements say where blocks begin, in elements; NULL: one after the other. Both ends of a
 * pair must give one length. With `unequal` a reduce_scatter (reduce_scatterv) has input_counts, the same on all ranks.
 * Its blocks are one after the other, so input_displacements is NULL, and it does not look at `count`. The arrays are
 * copied when the call starts or is prepared.
 *
 * With `load` and `store` a broadcast's vector need not be one stretch of bytes on this rank. torii moves it by these
 * functions alone, a part at a time while other parts are on their way, and does not look at `result`. Any rank may
 * have them, whatever the others do. */
typedef struct torii_call {
  size_t size;
  torii_collective collective;
  const void* input;
  void* result;
  size_t count;
  torii_type type;
  torii_op op;
  int root;
  torii_user_function user; /* with TORII_USER; `type` is ignored and user_bytes is the size of an element */
  void* user_data;
  size_t user_bytes;
  int unequal; /* not 0: blocks have lengths of their own */
  const size_t* input_counts;
  const size_t* input_displacements;
  const size_t* result_counts;
  const size_t* result_displacements;
  torii_load_function load; /* broadcast: both or none */
  torii_store_function store;
  void* access_data;
  /* How long a wait for this call without progress may last, on this rank; 0: that of the team. The team fails when it
   * has passed, on all ranks. Waits in the start of the call have the team's. */
  double timeout_seconds;
  const void* factor; /* TORII_PREMUL_SUM: one element of `type`, copied when the call starts or is prepared */
  const void* const* input_blocks; /* with `unequal`: addresses of blocks (torii/block_lists.h) */
  void* const* result_blocks;
  const torii_leaves* leaves; /* allreduce, reduce, reduce_scatter: the operands are leaves' (torii/leaves.h) */
  size_t leaf_stride;         /* elements from one leaf in `input` to the next; 0: one right behind the other */
  torii_leaf_function leaf;   /* writes the leaves, in place of `input`; may be NULL */
  void* leaf_data;
  /* With TORII_USER, equal on all ranks. 0: operands are combined in the order of ranks, at `canonical` whatever the
   * team's determinism, and a reduce_scatter has at most 256 ranks. Not 0: the order does not matter to `user`, so the
   * team combines as for other operations, which may be faster. */
  int commutes;
} torii_call;

/* Runs one operation to its end: blocks as the named functions do, with their statuses (torii/collectives.h). In a
 * group it joins. */
TORII_API torii_status torii_run(torii_team* team, const torii_call* call);
/* Starts one operation. It moves in torii_progress() and in tests, and in waits and blocking operations while they
 * wait, on any team of the context. With TORII_HELPERS it also moves beside the caller. Other calls move nothing, nor
 * does a test or a wait that finds its own operation done. All ranks start operations in equal order. */
TORII_API torii_status torii_start(torii_team* team, const torii_call* call, torii_request** request);
/* A persistent operation: prepared once (collective), then torii_restart() and torii_wait() any number of times. Ranks
 * prepare and free in one order; they may start different ones in any order. */
TORII_API torii_status torii_prepare(torii_team* team, const torii_call* call, torii_request** request);
/* Starts a prepared operation that is not running; does not wait. */
TORII_API torii_status torii_restart(torii_request* request);
/* Looks whether the operation has ended, and moves the team's operations a little; does not wait. A request of
 * torii_start is freed by a test or a wait that finds it ended, whatever its status, and *request becomes NULL. A
 * request that is NULL, or a persistent one that is not running, counts as ended. If it has ended, the status is that
 * of the operation; otherwise TORII_OK. */
TORII_API torii_status torii_test(torii_request** request, int* done);
/* Waits for the end, up to the team's deadline. */
TORII_API torii_status torii_wait(torii_request** request);
/* Waits for `seconds` at the longest, and not much longer. If the operation has not ended, `done` is 0, nothing has
 * failed, and torii_last_error() says what it waits for, such as "waiting for rank 3 on host a". Waits for a moment
 * each add up: the deadline and failures end them as they end one long wait. */
TORII_API torii_status torii_wait_for(torii_request** request, double seconds, int* done);
/* The same for a list of `count` requests, which may be of different teams of one context, and NULL. The status is that
 * of a request that has ended, and *index its place; -1 if none has ended (test) or none is running (wait). */
TORII_API torii_status torii_test_any(torii_request** requests, int count, int* index);
TORII_API torii_status torii_wait_any(torii_request** requests, int count, int* index);
/* All of them; nothing is freed by a test unless all have ended. The status is the first one in the list that is not
 * TORII_OK. */
TORII_API torii_status torii_test_all(torii_request** requests, int count, int* done);
TORII_API torii_status torii_wait_all(torii_request** requests, int count);
/* Waits until at least one has ended. `indices` gets the places of all that have ended, ascending, and `statuses` their
 * statuses (it may be NULL). *done is their number, which is 0 if none is running. The status is the first one that is
 * not TORII_OK. */
TORII_API torii_status torii_wait_some(torii_request** requests, int count, int* indices, torii_status* statuses,
                                       int* done);
/* Moves the started operations of all teams of the context, once, from any thread, without waiting; *moved (may be
 * NULL) says whether one moved. Does not look for deadlines or lost ranks: tests and waits do. */
TORII_API torii_status torii_progress(torii_context* context, int* moved);
/* Calls `done` once when a running request ends, with its status. The caller is the thread that finds the request
 * ended, which may be a progress thread, or this call if the request has ended. For a persistent request, until its
 * next end. The function must not call torii, throw, or wait; it wakes a thread, say, which then tests the request. A
 * second function replaces the first. */
typedef void (*torii_done_function)(torii_status status, void* data);
TORII_API torii_status torii_request_on_done(torii_request* request, torii_done_function done, void* data);
/* A descriptor for poll() and epoll. It is readable after operations that torii_start or torii_restart started have
 * ended, on any team of the context, until its 8 bytes are read. An eventfd, non-blocking, made by the first call and
 * closed with the context. It does not move operations: progress threads (TORII_HELPERS) do, or torii_progress and
 * tests. -1 if there is none; torii_last_error() says why. From any thread. */
TORII_API int torii_context_event_fd(torii_context* context);
/* Frees a persistent operation that is not running, in the order of all ranks; does not wait. *request becomes NULL. A
 * running one is TORII_INVALID_ARGUMENT; a started one is freed by the test or wait that finds it ended. */
TORII_API torii_status torii_request_free(torii_request** request);

/* For bindings of other languages: a call on the team that the binding refuses itself, because a buffer is too short,
 * say. It counts as this rank's call. So the team fails if the other ranks make that call, and the calls that follow
 * pair with the right ones. Returns TORII_INVALID_ARGUMENT; `reason` becomes torii_last_error(). */
TORII_API torii_status torii_refuse(torii_team* team, const char* reason);

/* ---- data dealt over the ranks ---------------------------------------------------------------------------------- */

/* How `items` are dealt, in order: the first items % ranks ranks have one more than the others. Rank `rank` has `count`
 * items from `first` on. Local. */
TORII_API torii_status torii_split(size_t items, int ranks, int rank, size_t* first, size_t* count);
/* Transposes a matrix of rows x columns elements of 1 to 16 bytes, row by row in memory. This rank has the rows that
 * torii_split gives it of `rows`, and gets as many rows of the columns x rows matrix as torii_split gives it of
 * `columns`. In place: input == result, large enough for both. Collective, with equal sizes on all ranks. The team
 * keeps memory for both parts in its arena until it is destroyed. */
TORII_API torii_status torii_transpose(torii_team* team, const void* input, void* result, size_t rows, size_t columns,
                                       size_t element_bytes);
/* The same for an array of 1 to 8 dimensions, the last one fastest: dimension d of the result is dimension axes[d] of
 * the input. Both are dealt by their first dimension. With axes[0] == 0 nothing goes to another rank, and the call is
 * local. */
TORII_API torii_status torii_transpose_array(torii_team* team, const void* input, void* result, const size_t* extents,
                                             const int* axes, int dimensions, size_t element_bytes);
/* Moves items to other places. Item i of this rank becomes item destinations[i] of the result. Positions of the result
 * are numbered over all ranks: rank 0's result_count first, then rank 1's. `destinations` of all ranks together hold
 * each position once; otherwise all ranks get TORII_INVALID_ARGUMENT, and results hold anything. Ranks may have any
 * number of items, the sums of count and result_count are equal. In place: input == result. Collective. */
TORII_API torii_status torii_permute(torii_team* team, const void* input, size_t count, const uint64_t* destinations,
                                     void* result, size_t result_count, size_t item_bytes);

/* ---- results one can check -------------------------------------------------------------------------------------- */

/* Writes `rank`'s input elements [first, first + count) to `out`. */
typedef void (*torii_operand)(int rank, size_t first, size_t count, void* out, void* data);

/* Evaluates the order that the call's algorithm declares for the elements [first, first + count) of this rank's result:
 * bit for bit what the operation must give. It never evaluates the algorithm's plans, which the verifier compares with
 * the order. Local; slow. */
TORII_API torii_status torii_expect(torii_team* team, const torii_call* call, size_t first, size_t count,
                                    torii_operand operand, void* operand_data, void* out);

/* The algorithm that the team would run for a call, and how. The call is checked but not made. Local, waits for
 * nobody. */
typedef struct torii_choice {
  size_t size;
  const char* algorithm; /* static text */
  const char* transport; /* static text */
  const char* isa;       /* static text */
  size_t segment_bytes;
  int engines;
  int window; /* segments of one pipelined movement, or messages of an alltoall, scatter or gather, under way at most */
} torii_choice;
/* Writes the choice; set choice->size to sizeof(torii_choice) before. */
TORII_API torii_status torii_choose(torii_team* team, const torii_call* call, torii_choice* choice);

#ifdef __cplusplus
}
#endif

#endif
