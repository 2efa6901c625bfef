// SPDX-License-Identifier: Apache-2.0
// Times MPI's collectives with coll/torii and without it, on two groups of one process, by turns:
//   mpirun -n RANKS --mca coll_torii_enable 1 mpi_side_by_side [LARGEST BYTES]
// Bytes are those of one rank's vector, and of one rank's block for allgather, alltoall and reduce_scatter_block.
// bcast_holes is a broadcast of every other 64 bytes. The last rows are the making of a copy of the group: alone, and
// with its first operation, an allreduce of one int, for which coll/torii makes a team if coll_torii_delay is 0.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kRounds = 11;
constexpr double kRoundSeconds = 0.02;  // long against the clock's step and the barrier before

constexpr int kHoleFloats = 16;  // a line of every two

struct Operands {
  std::vector<float> in, out;
  MPI_Datatype holes;  ///< every other line of `in`, as many as `out` has
};

struct Measured {
  const char* name;
  bool per_rank;  ///< a block for every rank
  void (*call)(Operands& operands, int count, MPI_Comm comm);
};

constexpr Measured kMeasured[] = {
    {"allreduce", false,
     [](Operands& o, int count, MPI_Comm comm) {
       MPI_Allreduce(o.in.data(), o.out.data(), count, MPI_FLOAT, MPI_SUM, comm);
     }},
    {"reduce", false,
     [](Operands& o, int count, MPI_Comm comm) {
       MPI_Reduce(o.in.data(), o.out.data(), count, MPI_FLOAT, MPI_SUM, 0, comm);
     }},
    {"bcast", false, [](Operands& o, int count, MPI_Comm comm) { MPI_Bcast(o.out.data(), count, MPI_FLOAT, 0, comm); }},
    {"bcast_holes", false, [](Operands& o, int, MPI_Comm comm) { MPI_Bcast(o.in.data(), 1, o.holes, 0, comm); }},
    {"allgather", true,
     [](Operands& o, int count, MPI_Comm comm) {
       MPI_Allgather(o.in.data(), count, MPI_FLOAT, o.out.data(), count, MPI_FLOAT, comm);
     }},
    {"reduce_scatter_block", true,
     [](Operands& o, int count, MPI_Comm comm) {
       MPI_Reduce_scatter_block(o.in.data(), o.out.data(), count, MPI_FLOAT, MPI_SUM, comm);
     }},
    {"alltoall", true,
     [](Operands& o, int count, MPI_Comm comm) {
       MPI_Alltoall(o.in.data(), count, MPI_FLOAT, o.out.data(), count, MPI_FLOAT, comm);
     }},
};

/// Microseconds of one call, the slowest rank's mean over `calls` calls.
double time_once(const Measured& measured, Operands& operands, int count, int calls, MPI_Comm comm) {
  MPI_Barrier(comm);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) measured.call(operands, count, comm);
  double mine = (MPI_Wtime() - begin) / calls * 1e6, slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, comm);
  return slowest;
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void print(const char* name, std::size_t bytes, const std::vector<double> (&times)[2], int rank) {
  const double without = median(times[0]), with = median(times[1]);
  if (rank == 0) std::printf("%-21s %10zu %12.2f %12.2f %8.2f\n", name, bytes, without, with, without / with);
}

void measure(const Measured& measured, std::size_t bytes, MPI_Comm (&comms)[2], int rank) {
  const int count = static_cast<int>(bytes / sizeof(float));
  int ranks = 0;
  MPI_Comm_size(comms[0], &ranks);
  const std::size_t elements =
      static_cast<std::size_t>(count) * (measured.per_rank ? static_cast<std::size_t>(ranks) : 1);
  // Of short vectors one line, whatever `bytes` says.
  const int lines = std::max(count / kHoleFloats, 1);
  Operands operands = {std::vector<float>(std::max<std::size_t>(2 * elements, 2 * kHoleFloats), 1),
                       std::vector<float>(elements, 0), MPI_DATATYPE_NULL};
  MPI_Type_vector(lines, kHoleFloats, 2 * kHoleFloats, MPI_FLOAT, &operands.holes);
  MPI_Type_commit(&operands.holes);
  const double first = time_once(measured, operands, count, 3, comms[0]);
  const int calls = std::clamp(static_cast<int>(kRoundSeconds * 1e6 / first), 3, 10000);
  std::vector<double> times[2];
  for (int round = 0; round < kRounds; ++round) {
    for (int side = 0; side < 2; ++side) {
      times[side].push_back(time_once(measured, operands, count, calls, comms[side]));
    }
  }
  MPI_Type_free(&operands.holes);
  print(measured.name, bytes, times, rank);
}

/// Microseconds that the slowest rank takes to make a copy of the group, and to use it once if it is `used`.
double time_copy(MPI_Comm comm, MPI_Info info, bool used) {
  MPI_Barrier(comm);
  const double begin = MPI_Wtime();
  MPI_Comm copy;
  MPI_Comm_dup_with_info(comm, info, &copy);
  const int one = 1;
  int sum = 0;
  if (used) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy);
  double mine = (MPI_Wtime() - begin) * 1e6, slowest = 0;
  MPI_Comm_free(&copy);
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, comm);
  return slowest;
}

void measure_copies(MPI_Comm (&comms)[2], MPI_Info without_torii, int rank) {
  constexpr int kCopies = 201;
  for (const bool used : {false, true}) {
    std::vector<double> times[2];
    for (int i = 0; i < kCopies; ++i) {
      times[0].push_back(time_copy(comms[0], without_torii, used));
      times[1].push_back(time_copy(comms[1], MPI_INFO_NULL, used));
    }
    print(used ? "dup and first use" : "dup", 0, times, rank);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long long most = argc == 2 ? std::atoll(argv[1]) : 4 << 20;
  if (argc > 2 || most < 4) {
    std::fprintf(stderr, "usage: mpi_side_by_side [LARGEST BYTES, 4 or more]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "ompi_comm_coll_preference", "^torii");
  MPI_Comm comms[2];
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comms[0]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  if (rank == 0) std::printf("%-21s %10s %12s %12s %8s\n", "", "bytes", "without, us", "with, us", "ratio");
  for (const Measured& measured : kMeasured) {
    for (long long bytes = 4; bytes <= most; bytes *= 4)
      measure(measured, static_cast<std::size_t>(bytes), comms, rank);
  }
  measure_copies(comms, info, rank);
  MPI_Info_free(&info);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
