// SPDX-License-Identifier: Apache-2.0
// Times what communicators cost an MPI program, as the program sees it:
//   mpirun -n RANKS mpi_communicators [REPEATS]
// The program knows nothing of coll/torii: perf/programs --only communicators runs it with and without the component
// by turns. Each line has a name and microseconds of the slowest rank: one start or end of MPI, or one of REPEATS
// (default 500) repeats of a row of calls; rows of many calls are repeated less often. Rows "dup_K" make a copy of
// MPI_COMM_WORLD, use it K times, and free it; in rows "pairs_K" each use is a short broadcast and a short reduce, of
// changing lengths and roots; "alive_K" keeps all copies until the last one is made.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// The time of the slowest rank, on all ranks.
double slowest(double mine) {
  double most = 0;
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

void print(const std::string& name, double microseconds) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("%s %.2f\n", name.c_str(), microseconds);
}

void use(MPI_Comm comm, int times) {
  for (int i = 0; i < times; ++i) {
    const double one = 1;
    double sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
  }
}

/// As solvers use their communicators.
void use_in_pairs(MPI_Comm comm, int pairs) {
  constexpr int kMost = 64;
  double values[kMost] = {};
  double sums[kMost] = {};
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  for (int i = 0; i < pairs; ++i) {
    const int count = 1 + i * 7 % kMost;
    MPI_Bcast(values, count, MPI_DOUBLE, i % ranks, comm);
    MPI_Reduce(values, sums, count, MPI_DOUBLE, MPI_SUM, (i + 1) % ranks, comm);
  }
}

template <class Body>
void measure(const std::string& name, int repeats, const Body& body) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = Clock::now();
  body();
  print(name, slowest(microseconds_since(begin)) / repeats);
}

void measure_copies(const char* row, void (*use_copy)(MPI_Comm, int), int repeats, int uses) {
  measure(row + std::to_string(uses), repeats, [=] {
    for (int i = 0; i < repeats; ++i) {
      MPI_Comm copy;
      MPI_Comm_dup(MPI_COMM_WORLD, &copy);
      use_copy(copy, uses);
      MPI_Comm_free(&copy);
    }
  });
}

/// Rows of a grid of processes, such as solvers make.
void measure_parts(int repeats) {
  measure("split_1", repeats, [=] {
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
  measure("alive_" + std::to_string(uses), repeats, [=] {
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
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::printf(
        "Times how communicators of MPI are copied, split, used and freed.\n"
        "Usage: mpi_communicators [REPEATS]\n\n"
        "Example:\n  mpirun -n 2 mpi_communicators 500\n");
    return 0;
  }
  const auto begin = Clock::now();
  MPI_Init(&argc, &argv);
  const double init = microseconds_since(begin);
  const int repeats = argc == 2 ? std::atoi(argv[1]) : 500;
  if (argc > 2 || repeats < 1) {
    std::fprintf(stderr, "usage: mpi_communicators [REPEATS, 1 or more]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  print("init", slowest(init));
  use(MPI_COMM_WORLD, 1000);
  constexpr int kFew = 16;
  const auto few_of = [=](int uses) { return uses <= kFew ? repeats : std::max(repeats * kFew / uses, 1); };
  for (const int uses : {0, 1, 4, kFew, 64, 256, 1024}) measure_copies("dup_", use, few_of(uses), uses);
  for (const int uses : {1, 4, kFew, 140, 200, 400}) measure_copies("pairs_", use_in_pairs, few_of(uses), uses);
  measure_parts(repeats);
  measure_alive(repeats, 1);
  const auto end = Clock::now();
  MPI_Finalize();
  if (rank == 0) std::printf("finalize %.2f\n", microseconds_since(end));
  return 0;
}
