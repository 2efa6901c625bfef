/* SPDX-License-Identifier: Apache-2.0
 * A bucket sort of whole numbers, for perf/programs. In every round each rank counts its keys by bucket, and all ranks
 * sum the counts. Ranges of buckets with about equally many keys go to the ranks, which sort them.
 *   mpirun -n RANKS mpi_key_sort [KEYS] [ROUNDS]
 * The program proves the order of all keys, their number and their sum in every round. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024
#define KEY_BITS 20
#define KEYS_OF_BUCKET ((1 << KEY_BITS) / BUCKETS)

typedef struct sort_t {
  int rank, ranks;
  int keys;     /* of each rank at the beginning */
  int* own;     /* the keys of this rank at the beginning */
  int* sorted;  /* the same by bucket */
  int* got;     /* the keys of all ranks in the buckets of this rank */
  int* counts;  /* of keys, for and from each rank: four arrays side by side */
  int got_room; /* in keys */
  uint64_t random;
} sort_t;

static void* room_for(size_t numbers) {
  int* const room = calloc(numbers, sizeof(int));
  if (room != NULL) return room;
  fprintf(stderr, "mpi_key_sort: no memory for %zu keys\n", numbers);
  MPI_Abort(MPI_COMM_WORLD, 1);
  return NULL;
}

static void make_sort(sort_t* sort, int keys) {
  MPI_Comm_rank(MPI_COMM_WORLD, &sort->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &sort->ranks);
  sort->keys = keys;
  sort->own = room_for((size_t)keys);
  sort->sorted = room_for((size_t)keys);
  sort->counts = room_for(4 * (size_t)sort->ranks);
  sort->got = NULL;
  sort->got_room = 0;
  sort->random = 88172645463325252U + (uint64_t)sort->rank * 1000003U;
}

/* Keys in the middle are more frequent. */
static long draw_keys(sort_t* sort) {
  long sum = 0;
  for (int i = 0; i < sort->keys; ++i) {
    sort->random ^= sort->random << 13;
    sort->random ^= sort->random >> 7;
    sort->random ^= sort->random << 17;
    const int mask = (1 << (KEY_BITS - 1)) - 1;
    sort->own[i] = (int)(sort->random & (uint64_t)mask) + (int)((sort->random >> 32) & (uint64_t)mask);
    sum += sort->own[i];
  }
  return sum;
}

/* Sorts the own keys by bucket, and sets how many go to each rank. */
static void choose_ranks(sort_t* sort) {
  int mine[BUCKETS] = {0};
  int all[BUCKETS];
  int places[BUCKETS];
  for (int i = 0; i < sort->keys; ++i) ++mine[sort->own[i] / KEYS_OF_BUCKET];
  MPI_Allreduce(mine, all, BUCKETS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const long total = (long)sort->keys * sort->ranks;
  memset(sort->counts, 0, sizeof(int) * (size_t)sort->ranks);
  long before = 0;
  int place = 0;
  for (int bucket = 0; bucket < BUCKETS; ++bucket) {
    const int owner = (int)(before * sort->ranks / total);
    sort->counts[owner < sort->ranks ? owner : sort->ranks - 1] += mine[bucket];
    before += all[bucket];
    places[bucket] = place;
    place += mine[bucket];
  }
  for (int i = 0; i < sort->keys; ++i) sort->sorted[places[sort->own[i] / KEYS_OF_BUCKET]++] = sort->own[i];
}

/* Sends all keys to their ranks; the number of those that this rank gets. */
static int exchange_keys(sort_t* sort) {
  int* const out = sort->counts;
  int* const out_places = out + sort->ranks;
  int* const in = out_places + sort->ranks;
  int* const in_places = in + sort->ranks;
  MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
  int keys = 0;
  for (int rank = 0, sent = 0; rank < sort->ranks; ++rank) {
    out_places[rank] = sent;
    in_places[rank] = keys;
    sent += out[rank];
    keys += in[rank];
  }
  if (keys > sort->got_room) {
    free(sort->got);
    sort->got_room = keys + keys / 8;
    sort->got = room_for((size_t)sort->got_room);
  }
  MPI_Alltoallv(sort->sorted, out, out_places, MPI_INT, sort->got, in, in_places, MPI_INT, MPI_COMM_WORLD);
  return keys;
}

/* Sorts by counting, since keys are small. */
static void sort_keys(int* keys, int count, int* counts) {
  memset(counts, 0, sizeof(int) << KEY_BITS);
  for (int i = 0; i < count; ++i) ++counts[keys[i]];
  int place = 0;
  for (int key = 0; key < 1 << KEY_BITS; ++key) {
    for (int i = 0; i < counts[key]; ++i) keys[place++] = key;
  }
}

/* Whether no key is smaller than one before it, here or on the ranks before, and none was lost. */
static int is_right(const sort_t* sort, int keys, long sum) {
  int right = 1;
  long have[2] = {keys, 0};
  for (int i = 0; i < keys; ++i) {
    have[1] += sort->got[i];
    if (i > 0 && sort->got[i - 1] > sort->got[i]) right = 0;
  }
  int largest = keys > 0 ? sort->got[keys - 1] : -1;
  int before = -1;
  MPI_Exscan(&largest, &before, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (sort->rank > 0 && keys > 0 && before > sort->got[0]) right = 0;
  long wanted[2] = {sort->keys, sum};
  MPI_Allreduce(MPI_IN_PLACE, have, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, wanted, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (have[0] != wanted[0] || have[1] != wanted[1]) right = 0;
  MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return right;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--help") == 0) {
    printf(
        "Sorts KEYS random keys of each rank by buckets, ROUNDS times, and proves the result.\n"
        "Usage: mpi_key_sort [KEYS] [ROUNDS]\n\n"
        "Example:\n  mpirun -n 2 mpi_key_sort 65536 100\n");
    return 0;
  }
  MPI_Init(&argc, &argv);
  const int keys = argc > 1 ? atoi(argv[1]) : 65536;
  const int rounds = argc > 2 ? atoi(argv[2]) : 100;
  if (argc > 3 || keys < 1 || keys > 1 << 24 || rounds < 1) {
    fprintf(stderr, "usage: mpi_key_sort [KEYS, 1 to %d] [ROUNDS, 1 or more]\n", 1 << 24);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  sort_t sort;
  make_sort(&sort, keys);
  int* const counts = room_for((size_t)1 << KEY_BITS);
  int right = 1;
  for (int round = 0; round < rounds && right; ++round) {
    const long sum = draw_keys(&sort);
    choose_ranks(&sort);
    const int got = exchange_keys(&sort);
    sort_keys(sort.got, got, counts);
    right = is_right(&sort, got, sum);
  }
  if (sort.rank == 0) printf("key sort: %d rounds, %s\n", rounds, right ? "right" : "WRONG");
  free(counts);
  free(sort.own);
  free(sort.sorted);
  free(sort.got);
  free(sort.counts);
  MPI_Finalize();
  return right ? 0 : 1;
}
