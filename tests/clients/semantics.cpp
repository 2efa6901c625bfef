// SPDX-License-Identifier: Apache-2.0
// An MPI program for what programs may do with groups, requests and threads:  mpirun -n RANKS mpi_semantics CASE...
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

int rank = 0;
int ranks = 0;
const char* program = "";

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("rank %d: %s\n", rank, what.c_str());
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int sum_over(MPI_Comm comm, int mine) {
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm);
  return all;
}

/// Groups by the hundred, alive at once, each used twice; then by the hundred one after the other.
void many_groups() {
  std::vector<MPI_Comm> all(300);
  for (std::size_t i = 0; i < all.size(); ++i) {
    MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 == 0 ? rank : -rank, &all[i]);
    expect(sum_over(all[i], 1) == ranks, "group " + std::to_string(i));
  }
  for (MPI_Comm& comm : all) expect(sum_over(comm, rank) == ranks * (ranks - 1) / 2, "a group, used again");
  for (MPI_Comm& comm : all) MPI_Comm_free(&comm);
  for (int i = 0; i < 1000; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    expect(sum_over(comm, 1) == ranks, "passing group " + std::to_string(i));
    MPI_Comm_free(&comm);
  }
}

/// A copy is made in the background while operations of the group go on. Open MPI makes it by iallreduce, from inside
/// opal_progress(); non-blocking operations of the group may get into its way where libnbc runs both, torii's do not.
void idup() {
  for (int i = 0; i < 50; ++i) {
    MPI_Comm parent, copy;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    const bool is_used = i % 2 == 0;
    if (is_used) MPI_Barrier(parent);
    MPI_Comm_idup(parent, &copy, &requests[0]);
    const int mine = rank;
    int all = ranks * (ranks - 1) / 2;
    if (is_used) MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, parent, &requests[1]);
    expect(sum_over(parent, 1) == ranks, "blocking beside idup");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect(all == ranks * (ranks - 1) / 2, "non-blocking beside idup");
    expect(sum_over(copy, 1) == ranks, "a copy made by idup");
    MPI_Comm_free(&copy);
    MPI_Comm_free(&parent);
  }
}

/// While a rank waits in a collective its messages must move: the sender needs the receiver's answer, and the receiver
/// comes to the collective only afterwards.
void messages_move() {
  std::vector<char> data(4 << 20, static_cast<char>(rank));
  for (int i = 0; i < 10; ++i) {
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    MPI_Request request;
    MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_CHAR, right, 0, MPI_COMM_WORLD, &request);
    if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
    std::vector<char> got(data.size());
    MPI_Recv(got.data(), static_cast<int>(got.size()), MPI_CHAR, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(got.front() == static_cast<char>(left) && got.back() == static_cast<char>(left),
           "a message beside a barrier");
  }
}

/// Many requests of one group in flight, waited for in another order, the group gone before they are done.
void requests_outlive_groups() {
  for (int round = 0; round < 20; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    constexpr int kRequests = 12;
    int in[kRequests], out[kRequests];
    MPI_Request requests[kRequests + 1];
    for (int i = 0; i < kRequests; ++i) {
      in[i] = rank + i;
      MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
    }
    MPI_Ibarrier(comm, &requests[kRequests]);
    MPI_Comm_free(&comm);
    for (int i = kRequests; i >= 0; --i) {
      MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      if (i < kRequests) expect(out[i] == ranks * (ranks - 1) / 2 + ranks * i, "request " + std::to_string(i));
    }
  }
}

/// Threads, each with a group of its own: first use, blocking and not, all at the same time.
void threads() {
  constexpr int kThreads = 4;
  MPI_Comm comms[kThreads];
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<std::thread> running;
  for (int i = 0; i < kThreads; ++i) {
    running.emplace_back([&, i] {
      for (int call = 0; call < 200; ++call) {
        expect(sum_over(comms[i], i + call) == ranks * (i + call), "a thread's sum");
        double in = i, out = 0;
        MPI_Request request;
        MPI_Iallreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, comms[i], &request);
        if (call % 3 == 0) MPI_Barrier(comms[i]);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(out == static_cast<double>(ranks * i), "a thread's request");
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

constexpr const char* kChild = "child";

/// A group that holds processes of two jobs is nobody's of torii, but works.
void spawn() {
  MPI_Comm children, merged;
  char argument[] = "child";
  char* arguments[] = {argument, nullptr};
  MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  MPI_Intercomm_merge(children, 0, &merged);
  expect(sum_over(merged, 1) == ranks + 1, "a group with a spawned process");
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&children);
}

void be_spawned() {
  MPI_Comm parent, merged;
  MPI_Comm_get_parent(&parent);
  MPI_Intercomm_merge(parent, 1, &merged);
  expect(sum_over(merged, 1) > 1, "the parents' group");
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&parent);
}

struct Named {
  const char* name;
  void (*run)();
};
constexpr Named kCases[] = {{"many_groups", many_groups},
                            {"idup", idup},
                            {"messages_move", messages_move},
                            {"requests_outlive_groups", requests_outlive_groups},
                            {"spawn", spawn},
                            {"threads", threads}};

}  // namespace

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  program = argv[0];
  if (argc == 2 && argv[1] == std::string(kChild)) {
    be_spawned();
    MPI_Finalize();
    return 0;
  }
  expect(level == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE");
  for (int i = 1; i < argc; ++i) {
    const Named* const found = std::find_if(std::begin(kCases), std::end(kCases),
                                            [&](const Named& one) { return argv[i] == std::string(one.name); });
    expect(found != std::end(kCases), std::string("no case is called '") + argv[i] + "'");
    found->run();
    if (rank == 0) std::printf("%s: ok\n", found->name);
  }
  MPI_Finalize();
  return 0;
}
