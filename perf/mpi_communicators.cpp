// SPDX-License-Identifier: Apache-2.0
// Times what communicators cost an MPI program, as the program sees it:
//   mpirun -n RANKS mpi_communicators [REPEATS]
// The program knows nothing of coll/torii: perf/programs --only communicators runs it with and without the component
// by turns. Each line has a name and milliseconds of the slowest rank: one start or end of MPI, or all REPEATS
// (default 500) repeats of a row of calls. Rows "dup_K" make a copy of MPI_COMM_WORLD, use it K times, and free it.
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// The time of the slowest rank, on all ranks.
double slowest(double mine) {
  double most = 0;
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

void print(const std::string& name, double milliseconds) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("%s %.3f\n", name.c_str(), milliseconds);
}

void use(MPI_Comm comm, int times) {
  for (int i = 0; i < times; ++i) {
    const double one = 1;
    double sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
  }
}

template <class Body>
void measure(const std::string& name, const Body& body) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = Clock::now();
  body();
  print(name, slowest(milliseconds_since(begin)));
}

void measure_copies(int repeats, int uses) {
  measure("dup_" + std::to_string(uses), [=] {
    for (int i = 0; i < repeats; ++i) {
      MPI_Comm copy;
      MPI_Comm_dup(MPI_COMM_WORLD, &copy);
      use(copy, uses);
      MPI_Comm_free(&copy);
    }
  });
}

/// Rows of a grid of processes, such as solvers make.
void measure_parts(int repeats) {
  measure("split_1", [=] {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < repeats; ++i) {
      MPI_Comm part;
      MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &part);
      use(part, 1);
      MPI_Comm_free(&part);
    }
  });
}

void measure_alive(int repeats, int uses) {
  measure("alive_" + std::to_string(uses), [=] {
    std::vector<MPI_Comm> all(static_cast<std::size_t>(repeats));
    for (MPI_Comm& comm : all) {
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      use(comm, uses);
    }
    for (MPI_Comm& comm : all) MPI_Comm_free(&comm);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto begin = Clock::now();
  MPI_Init(&argc, &argv);
  const double init = milliseconds_since(begin);
  const int repeats = argc == 2 ? std::atoi(argv[1]) : 500;
  if (argc > 2 || repeats < 1) {
    std::fprintf(stderr, "usage: mpi_communicators [REPEATS, 1 or more]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  print("init", slowest(init));
  use(MPI_COMM_WORLD, 1000);
  for (const int uses : {0, 1, 4, 16, 64, 256}) measure_copies(repeats, uses);
  measure_parts(repeats);
  measure_alive(repeats, 1);
  const auto end = Clock::now();
  MPI_Finalize();
  if (rank == 0) std::printf("finalize %.3f\n", milliseconds_since(end));
  return 0;
}
