/* SPDX-License-Identifier: Apache-2.0
 * The heat equation on a square, for perf/programs: each rank has some rows of the grid. In every step it exchanges its
 * outer rows with its neighbours, and all ranks sum by how much the step has changed the grid.
 *   mpirun -n RANKS mpi_heat [SIDE] [STEPS]
 * The grid begins as two standing waves, of which every step keeps a known part. So the result is known, too. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONDUCTION 0.2
#define PI 3.14159265358979323846

/* The rows of a rank. Before the first one and behind the last one is a row of a neighbour, or of zeros. */
typedef struct part_t {
  int rank, ranks;
  int side;  /* of the grid, without its edge of zeros */
  int first; /* row of this rank */
  int rows;
  double* now;
  double* next;
} part_t;

static double* cell(const part_t* part, double* grid, int row, int column) {
  return &grid[(size_t)(row + 1) * (size_t)(part->side + 2) + (size_t)(column + 1)];
}

static double wave(const part_t* part, int number, int row, int column) {
  const double step = PI * number / (part->side + 1);
  return sin(step * (part->first + row + 1)) * sin(step * (column + 1));
}

/* What a step leaves of a wave. */
static double kept(const part_t* part, int number) {
  return 1 - 4 * CONDUCTION * (1 - cos(PI * number / (part->side + 1)));
}

static void make_part(part_t* part, int side) {
  MPI_Comm_rank(MPI_COMM_WORLD, &part->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &part->ranks);
  part->side = side;
  part->first = (int)((long)side * part->rank / part->ranks);
  part->rows = (int)((long)side * (part->rank + 1) / part->ranks) - part->first;
  const size_t cells = (size_t)(part->rows + 2) * (size_t)(side + 2);
  part->now = calloc(cells, sizeof(double));
  part->next = calloc(cells, sizeof(double));
  if (part->now == NULL || part->next == NULL) {
    fprintf(stderr, "mpi_heat: no memory for %zu cells\n", cells);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int row = 0; row < part->rows; ++row) {
    for (int column = 0; column < side; ++column) {
      *cell(part, part->now, row, column) = wave(part, 1, row, column) + wave(part, 3, row, column);
    }
  }
}

static void exchange_rows(const part_t* part) {
  const int above = part->rank == 0 ? MPI_PROC_NULL : part->rank - 1;
  const int below = part->rank == part->ranks - 1 ? MPI_PROC_NULL : part->rank + 1;
  double* const grid = part->now;
  MPI_Sendrecv(cell(part, grid, 0, 0), part->side, MPI_DOUBLE, above, 0, cell(part, grid, part->rows, 0), part->side,
               MPI_DOUBLE, below, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(cell(part, grid, part->rows - 1, 0), part->side, MPI_DOUBLE, below, 1, cell(part, grid, -1, 0),
               part->side, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* One step. The sum of the squares of all changes. */
static double make_step(part_t* part) {
  exchange_rows(part);
  const int width = part->side + 2;
  double change = 0;
  for (int row = 0; row < part->rows; ++row) {
    const double* const from = cell(part, part->now, row, 0);
    double* const to = cell(part, part->next, row, 0);
    for (int column = 0; column < part->side; ++column) {
      const double around = from[column - 1] + from[column + 1] + from[column - width] + from[column + width];
      const double more = CONDUCTION * (around - 4 * from[column]);
      to[column] = from[column] + more;
      change += more * more;
    }
  }
  double* const old = part->now;
  part->now = part->next;
  part->next = old;
  double all = 0;
  MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/* Whether grid and last change are those that waves must have after so many steps. */
static int is_right(const part_t* part, int steps, double change) {
  const double low = pow(kept(part, 1), steps);
  const double high = pow(kept(part, 3), steps);
  double worst = 0;
  for (int row = 0; row < part->rows; ++row) {
    for (int column = 0; column < part->side; ++column) {
      const double wanted = low * wave(part, 1, row, column) + high * wave(part, 3, row, column);
      worst = fmax(worst, fabs(*cell(part, part->now, row, column) - wanted));
    }
  }
  /* The squares of a wave sum to a quarter of the grid, and different waves are orthogonal. */
  const double low_change = low * (1 - 1 / kept(part, 1));
  const double high_change = high * (1 - 1 / kept(part, 3));
  const double wanted = (low_change * low_change + high_change * high_change) * pow(part->side + 1, 2) / 4;
  int right = worst < 1e-9 && fabs(change - wanted) <= 1e-6 * wanted + 1e-15;
  MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return right;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--help") == 0) {
    printf(
        "Solves the heat equation on a grid of SIDE x SIDE cells, and proves the result.\n"
        "Usage: mpi_heat [SIDE] [STEPS]\n\n"
        "Example:\n  mpirun -n 2 mpi_heat 256 10000\n");
    return 0;
  }
  MPI_Init(&argc, &argv);
  part_t part;
  const int side = argc > 1 ? atoi(argv[1]) : 256;
  const int steps = argc > 2 ? atoi(argv[2]) : 10000;
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc > 3 || side < ranks || side > 20000 || steps < 1) {
    fprintf(stderr, "usage: mpi_heat [SIDE, %d to 20000] [STEPS, 1 or more]\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  make_part(&part, side);
  double change = 0;
  for (int step = 0; step < steps; ++step) change = make_step(&part);
  const int right = is_right(&part, steps, change);
  if (part.rank == 0) printf("heat: %d steps, %s\n", steps, right ? "right" : "WRONG");
  free(part.now);
  free(part.next);
  MPI_Finalize();
  return right ? 0 : 1;
}
