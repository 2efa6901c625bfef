/* SPDX-License-Identifier: Apache-2.0
 * Sends and receives between two ranks of a team, and groups of calls. Included by torii.h.
 *
 * A receive takes the first send that has come and that it accepts, by rank and tag. A send is taken by the first
 * receive that was posted and accepts it. So sends of one rank with one tag are received in the order in which they
 * were made. Sends and receives are in no order with the collectives of the team. A rank may make either in any order,
 * and a refused one counts for nobody.
 *
 * A send of up to some kilobytes returns when its bytes are in the receiver's memory, without waiting for the receive
 * while there is room. A longer one returns when it has been received. Nothing is written into a receiver's buffer but
 * by the receiver itself. A rank takes messages in any wait or test of the team; between nodes from its first send or
 * receive on.
 *
 * A send that does not fit the receive which it meets (more bytes than there is room for, or another type) fails the
 * team with TORII_MISMATCH. Deadlines, lost ranks and aborts end sends and receives as they end collectives, with
 * TORII_TIMEOUT, TORII_PEER_LOST and TORII_ABORTED. Threads: as collectives of the team. */
#ifndef TORII_SEND_RECV_H
#define TORII_SEND_RECV_H

#include <torii/types.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TORII_ANY_RANK (-1)
#define TORII_ANY_TAG (-1)

/* The sender, the tag and the length of a received message. */
typedef struct torii_received {
  size_t size;
  int rank; /* of the sender */
  int tag;
  size_t count; /* elements */
} torii_received;

/* Sends `count` elements at `buffer` to rank `to` (it may be the caller's own), with a tag of 0 or more. */
TORII_API torii_status torii_send(torii_team* team, const void* buffer, size_t count, torii_type type, int to, int tag);
/* Receives up to `count` elements into `buffer` from rank `from` or TORII_ANY_RANK, with this tag or TORII_ANY_TAG.
 * `received` may be NULL. */
TORII_API torii_status torii_recv(torii_team* team, void* buffer, size_t count, torii_type type, int from, int tag,
                                  torii_received* received);
/* The same, started: they never wait. Tests and waits are those of other requests. `buffer` and `received` must live
 * until the request has ended. */
TORII_API torii_status torii_start_send(torii_team* team, const void* buffer, size_t count, torii_type type, int to,
                                        int tag, torii_request** request);
TORII_API torii_status torii_start_recv(torii_team* team, void* buffer, size_t count, torii_type type, int from,
                                        int tag, torii_received* received, torii_request** request);
/* Takes a started receive back. If it had met no send, *cancelled is 1 and *request NULL. If it has met one, *cancelled
 * is 0: then wait for it. Sends cannot be taken back: TORII_INVALID_ARGUMENT. */
TORII_API torii_status torii_request_cancel(torii_request** request, int* cancelled);
/* Between the two, torii_send and torii_recv of the calling thread on that team only start, and its blocking
 * collectives (torii_run and the named functions) only join the group. torii_group_end makes the collectives in the
 * order in which they joined, and waits for all. So no order of sends, receives and collectives in a group is a
 * deadlock. Buffers, and `received`, must live until torii_group_end; arrays of counts and displacements are copied
 * before. No call of a group may use the result of another one.
 *
 * All ranks put the same collectives in their groups. Short neighbours run as one call (docs/embedding.md, "Groups").
 * A refused collective refuses the group, which then makes none of its collectives and counts as one refused call.
 *
 * The status of torii_group_end is the first one that is not TORII_OK, first of the collectives, then of the sends and
 * receives. A thread is in one group of a team at a time. torii_start and redistributions do not wait for the group. */
TORII_API torii_status torii_group_begin(torii_team* team);
TORII_API torii_status torii_group_end(torii_team* team);

#ifdef __cplusplus
}
#endif

#endif
