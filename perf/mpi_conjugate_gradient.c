/* SPDX-License-Identifier: Apache-2.0
 * A conjugate gradient, for perf/programs: each rank has some rows of a sparse matrix. In every iteration all ranks
 * gather the whole direction, since rows refer to distant places, and sum two dot products.
 *   mpirun -n RANKS mpi_conjugate_gradient [UNKNOWNS] [SOLVES]
 * The right-hand side is made from a known solution, with which the program compares its own after each solve. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row refers to the unknowns so many places before and behind its own; the ends of the vector meet. */
static const int distances[] = {1, 7, 61, 499, 2003};
#define DISTANCES ((int)(sizeof(distances) / sizeof(distances[0])))
/* Keeps the condition number at 21, so that ITERATIONS reduce the error by far more than a million. */
#define DIAGONAL (2.0 * DISTANCES + 1.0)
#define ITERATIONS 50

/* The rows of a rank. */
typedef struct part_t {
  int rank, ranks;
  int unknowns;
  int first, rows;
  int* counts; /* rows of each rank */
  int* places; /* their first rows */
  double* whole;
  double *x, *residual, *direction, *product, *right_side;
} part_t;

static double* room_for(int numbers) {
  double* const room = calloc((size_t)numbers, sizeof(double));
  if (room != NULL) return room;
  fprintf(stderr, "mpi_conjugate_gradient: no memory for %d numbers\n", numbers);
  MPI_Abort(MPI_COMM_WORLD, 1);
  return NULL;
}

static double solution_at(int row, int solve) { return 1 + (row + solve) % 11 * 0.125; }

static void make_part(part_t* part, int unknowns) {
  MPI_Comm_rank(MPI_COMM_WORLD, &part->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &part->ranks);
  part->unknowns = unknowns;
  part->counts = malloc(2 * sizeof(int) * (size_t)part->ranks);
  if (part->counts == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  part->places = part->counts + part->ranks;
  for (int rank = 0; rank < part->ranks; ++rank) {
    part->places[rank] = (int)((long)unknowns * rank / part->ranks);
    part->counts[rank] = (int)((long)unknowns * (rank + 1) / part->ranks) - part->places[rank];
  }
  part->first = part->places[part->rank];
  part->rows = part->counts[part->rank];
  part->whole = room_for(unknowns);
  double** const vectors[] = {&part->x, &part->residual, &part->direction, &part->product, &part->right_side};
  for (int i = 0; i < 5; ++i) *vectors[i] = room_for(part->rows);
}

static void free_part(part_t* part) {
  double* const vectors[] = {part->x, part->residual, part->direction, part->product, part->right_side, part->whole};
  for (int i = 0; i < 6; ++i) free(vectors[i]);
  free(part->counts);
}

/* result = matrix * whole, for the rows of this rank. */
static void multiply(const part_t* part, double* result) {
  for (int row = 0; row < part->rows; ++row) {
    const int at = part->first + row;
    double sum = DIAGONAL * part->whole[at];
    for (int i = 0; i < DISTANCES; ++i) {
      const int distance = distances[i] % part->unknowns;
      const int before = at < distance ? at - distance + part->unknowns : at - distance;
      const int behind = at + distance >= part->unknowns ? at + distance - part->unknowns : at + distance;
      sum -= part->whole[before] + part->whole[behind];
    }
    result[row] = sum;
  }
}

static double dot(const part_t* part, const double* left, const double* right) {
  double mine = 0;
  double all = 0;
  for (int row = 0; row < part->rows; ++row) mine += left[row] * right[row];
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static void solve(part_t* part) {
  for (int row = 0; row < part->rows; ++row) {
    part->x[row] = 0;
    part->residual[row] = part->direction[row] = part->right_side[row];
  }
  double squares = dot(part, part->residual, part->residual);
  for (int iteration = 0; iteration < ITERATIONS && squares > 0; ++iteration) {
    MPI_Allgatherv(part->direction, part->rows, MPI_DOUBLE, part->whole, part->counts, part->places, MPI_DOUBLE,
                   MPI_COMM_WORLD);
    multiply(part, part->product);
    const double length = squares / dot(part, part->direction, part->product);
    for (int row = 0; row < part->rows; ++row) {
      part->x[row] += length * part->direction[row];
      part->residual[row] -= length * part->product[row];
    }
    const double less = dot(part, part->residual, part->residual);
    const double turn = less / squares;
    squares = less;
    for (int row = 0; row < part->rows; ++row) {
      part->direction[row] = part->residual[row] + turn * part->direction[row];
    }
  }
}

/* Whether the solution of the system with a known one is that one. */
static int solves(part_t* part, int number) {
  for (int row = 0; row < part->unknowns; ++row) part->whole[row] = solution_at(row, number);
  multiply(part, part->right_side);
  solve(part);
  double worst = 0;
  for (int row = 0; row < part->rows; ++row) {
    worst = fmax(worst, fabs(part->x[row] - solution_at(part->first + row, number)));
  }
  int right = worst < 1e-6;
  MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return right;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--help") == 0) {
    printf(
        "Solves sparse systems of UNKNOWNS equations by conjugate gradients, SOLVES times, and proves the results.\n"
        "Usage: mpi_conjugate_gradient [UNKNOWNS] [SOLVES]\n\n"
        "Example:\n  mpirun -n 2 mpi_conjugate_gradient 14001 100\n");
    return 0;
  }
  MPI_Init(&argc, &argv);
  const int unknowns = argc > 1 ? atoi(argv[1]) : 14001;
  const int solve_count = argc > 2 ? atoi(argv[2]) : 100;
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc > 3 || unknowns < ranks || unknowns > 100000000 || solve_count < 1) {
    fprintf(stderr, "usage: mpi_conjugate_gradient [UNKNOWNS, %d to 100000000] [SOLVES, 1 or more]\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  part_t part;
  make_part(&part, unknowns);
  int right = 1;
  for (int number = 0; number < solve_count && right; ++number) right = solves(&part, number);
  if (part.rank == 0) printf("conjugate gradient: %d solves, %s\n", solve_count, right ? "right" : "WRONG");
  free_part(&part);
  MPI_Finalize();
  return right ? 0 : 1;
}
