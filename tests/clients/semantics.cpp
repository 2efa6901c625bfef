// SPDX-License-Identifier: Apache-2.0
// An MPI program for what programs may do with groups, requests and threads:  mpirun -n RANKS mpi_semantics CASE...
#include "tests/clients/semantics.hpp"

#include <mpi-ext.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <thread>
#include <vector>

namespace torii::clients {

int rank = 0;
int ranks = 0;

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

void make_teams(MPI_Comm comm) {
  MPI_Request request;
  MPI_Ibarrier(comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(comm);
}

namespace {

const char* program = "";

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
    if (is_used) make_teams(parent);
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
    make_teams(comm);
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

/// Persistent operations: started in another order on every rank, types and operations freed before; freed in another
/// order on every rank, some when their group is gone; so many that not all can be torii's; new ones in place of freed.
void persistent() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int round = 0; round < 3; ++round) {
    constexpr int kRequests = 40;
    std::vector<int> in(2 * kRequests), out(3 * kRequests, -1);
    std::vector<MPI_Request> requests(kRequests);
    MPI_Op op;
    MPI_Op_create(
        [](void* left, void* right, int* length, MPI_Datatype*) {
          for (int i = 0; i < 3 * *length; i += 3) {
            static_cast<int*>(right)[i] += static_cast<int*>(left)[i];
            static_cast<int*>(right)[i + 2] += static_cast<int*>(left)[i + 2];
          }
        },
        1, &op);
    MPI_Datatype apart;
    MPI_Type_vector(2, 1, 2, MPI_INT, &apart);
    MPI_Type_commit(&apart);
    for (std::size_t i = 0; i < kRequests; ++i) {
      if (i % 2 == 0) {
        MPIX_Allreduce_init(&in[2 * i], &out[3 * i], 2, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[i]);
      } else {
        MPIX_Allreduce_init(MPI_IN_PLACE, &out[3 * i], 1, apart, op, comm, MPI_INFO_NULL, &requests[i]);
      }
    }
    MPI_Type_free(&apart);
    MPI_Op_free(&op);
    if (round == 2) MPI_Comm_free(&comm);
    for (int start = 0; start < 3; ++start) {
      for (std::size_t i = 0; i < kRequests; ++i)
        in[2 * i] = out[3 * i] = in[2 * i + 1] = out[3 * i + 2] = rank + start;
      const auto shift = static_cast<std::size_t>(rank);
      for (std::size_t i = 0; i < kRequests; ++i) MPI_Start(&requests[(i * 7 + shift) % kRequests]);
      MPI_Waitall(kRequests, requests.data(), MPI_STATUSES_IGNORE);
      const int wanted = ranks * (ranks - 1) / 2 + ranks * start;
      for (std::size_t i = 0; i < kRequests; ++i) {
        expect(out[3 * i] == wanted && out[3 * i + (i % 2 == 0 ? 1 : 2)] == wanted, "start " + std::to_string(start));
        if (i % 2 == 1) expect(out[3 * i + 1] == -1, "a hole of a persistent operation");
      }
    }
    if (rank % 2 == 0) std::reverse(requests.begin(), requests.end());
    for (MPI_Request& request : requests) MPI_Request_free(&request);
  }
}

/// More persistent operations alive at once than a team has staging for.
void many_persistent() {
  std::vector<MPI_Request> requests(600);
  std::vector<int> all(requests.size() * static_cast<std::size_t>(ranks), -1);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    MPIX_Allgather_init(&rank, 1, MPI_INT, &all[i * static_cast<std::size_t>(ranks)], 1, MPI_INT, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &requests[i]);
  }
  MPI_Startall(static_cast<int>(requests.size()), requests.data());
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; i < all.size(); ++i) expect(all[i] == static_cast<int>(i) % ranks, "one of many");
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

/// Callbacks of attributes that make collective calls, on the group that is being copied or freed.
void attributes() {
  const auto copy = [](MPI_Comm old, int, void*, void* value, void* result, int* flag) {
    *flag = sum_over(old, 1) == ranks ? 1 : 0;
    *static_cast<void**>(result) = value;
    return MPI_SUCCESS;
  };
  const auto remove = [](MPI_Comm comm, int, void* value, void*) {
    *static_cast<int*>(value) += sum_over(comm, 1);
    MPI_Barrier(comm);
    return MPI_SUCCESS;
  };
  int key = MPI_KEYVAL_INVALID, removed = 0;
  MPI_Comm_create_keyval(copy, remove, &key, nullptr);
  MPI_Comm first, second;
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_set_attr(first, key, &removed);
  MPI_Comm_dup(first, &second);
  MPI_Comm_free(&second);
  MPI_Comm_free(&first);
  expect(removed == 2 * ranks, "collectives in callbacks of attributes");
  MPI_Comm_free_keyval(&key);
}

/// Two groups that meet, and the group of one: not torii's.
void other_groups() {
  MPI_Comm half, between;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &between);
  int theirs = 0;
  MPI_Comm_remote_size(between, &theirs);
  expect(sum_over(between, 1) == theirs, "allreduce between two groups");
  int value = rank == 0 ? 17 : 0;
  const int at_root = rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Bcast(&value, 1, MPI_INT, rank % 2 == 0 ? at_root : 0, between);
  expect(value == (rank == 0 || rank % 2 == 1 ? 17 : 0), "bcast between two groups");
  MPI_Request request;
  MPI_Ibarrier(between, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm copy;
  MPI_Comm_idup(between, &copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(sum_over(copy, 1) == theirs, "allreduce on a copy of two groups");
  MPI_Comm_free(&copy);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
  int got = -1, gathered = -1;
  MPI_Allgather(&rank, 1, MPI_INT, &got, 1, MPI_INT, MPI_COMM_SELF);
  MPI_Alltoall(&rank, 1, MPI_INT, &gathered, 1, MPI_INT, MPI_COMM_SELF);
  expect(sum_over(MPI_COMM_SELF, rank) == rank && got == rank && gathered == rank, "MPI_COMM_SELF");
}

struct Named {
  const char* name;
  void (*run)();
};
constexpr Named kCases[] = {{"absolute_addresses", absolute_addresses},
                            {"attributes", attributes},
                            {"delayed_teams", delayed_teams},
                            {"derived_broadcasts", derived_broadcasts},
                            {"empty_calls", empty_calls},
                            {"far_places", far_places},
                            {"many_groups", many_groups},
                            {"many_persistent", many_persistent},
                            {"other_groups", other_groups},
                            {"persistent", persistent},
                            {"idup", idup},
                            {"messages_move", messages_move},
                            {"refused_calls", refused_calls},
                            {"requests_outlive_groups", requests_outlive_groups},
                            {"reused_ids", reused_ids},
                            {"spawn", spawn},
                            {"thousands_alive", thousands_alive},
                            {"threads", threads}};

}  // namespace

int run(int argc, char** argv) {
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

}  // namespace torii::clients

int main(int argc, char** argv) { return torii::clients::run(argc, argv); }
