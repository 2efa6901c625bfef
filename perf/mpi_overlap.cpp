// SPDX-License-Identifier: Apache-2.0
// Times an MPI program whose message is under way while its sender waits in a collective:
//   mpirun -n RANKS mpi_overlap [REPEATS]
// Even ranks start an MPI_Isend of 1 MiB to the next rank and enter MPI_Allreduce; odd ranks receive it and enter
// MPI_Allreduce, at once or so many microseconds late ("late_5000"). The program knows nothing of coll/torii:
// perf/overlap runs it with and without the component by turns. Each line has a name and the median of REPEATS (default
// 300) rounds, in microseconds from the slowest rank's begin to its end.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// A pair of ranks, each with a buffer.
class Pair {
 public:
  Pair() : data_(std::size_t{1} << 20) { MPI_Comm_rank(MPI_COMM_WORLD, &rank_); }

  /// The median time of the slowest rank, if receivers come so late.
  double measure(int repeats, int late_us) {
    std::vector<double> all;
    for (int i = 0; i < repeats; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double mine = round_us(std::chrono::microseconds(late_us));
      double most = 0;
      MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      all.push_back(most);
    }
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }

 private:
  double round_us(std::chrono::microseconds late) {
    const auto begin = Clock::now();
    MPI_Request request = MPI_REQUEST_NULL;
    const int bytes = static_cast<int>(data_.size());
    if (rank_ % 2 == 0) {
      MPI_Isend(data_.data(), bytes, MPI_CHAR, rank_ + 1, 1, MPI_COMM_WORLD, &request);
    } else {
      if (late.count() != 0) std::this_thread::sleep_for(late);
      MPI_Recv(data_.data(), bytes, MPI_CHAR, rank_ - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    const double one = 1;
    double sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  }

  int rank_ = 0;
  std::vector<char> data_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::printf(
        "Times a message of MPI that is under way while its sender waits in MPI_Allreduce.\n"
        "Usage: mpi_overlap [REPEATS]\n\n"
        "Example:\n  mpirun -n 2 mpi_overlap 300\n");
    return 0;
  }
  MPI_Init(&argc, &argv);
  const int repeats = argc == 2 ? std::atoi(argv[1]) : 300;
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc > 2 || repeats < 1 || ranks % 2 != 0) {
    if (rank == 0) std::fprintf(stderr, "usage: mpi_overlap [REPEATS, 1 or more], with an even number of ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  Pair pair;
  (void)pair.measure(20, 0);
  for (const int late_us : {0, 1000, 5000}) {
    const double us = pair.measure(repeats, late_us);
    if (rank == 0) std::printf("late_%d %.1f\n", late_us, us);
  }
  MPI_Finalize();
  return 0;
}
