// SPDX-License-Identifier: Apache-2.0
// Cases of mpi_semantics about arguments: where operands may lie, and what may be empty.
#include <mpi.h>
// Behind mpi.h, which it does not include.
#include <mpi-ext.h>
#include <sys/mman.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/clients/semantics.hpp"

namespace torii::clients {
namespace {

/// One int at the absolute address `first`; the next element stands `step` ints behind it.
MPI_Datatype absolute(const int* first, int step) {
  MPI_Aint address = 0;
  MPI_Get_address(first, &address);
  MPI_Datatype placed, type;
  MPI_Type_create_hindexed_block(1, 1, &address, MPI_INT, &placed);
  MPI_Type_create_resized(placed, address, static_cast<MPI_Aint>(sizeof(int)) * step, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&placed);
  return type;
}

/// Expects the number of every rank, from 1, `step` apart, and makes room for the next call.
void check(std::vector<int>& got, int step, const std::string& what) {
  for (int i = 0; i < ranks; ++i) {
    expect(got[static_cast<std::size_t>(i * step)] == i + 1, what + " with MPI_BOTTOM");
  }
  got.assign(got.size(), 0);
}

void use_addresses(int step) {
  const auto all = static_cast<std::size_t>(ranks);
  const auto width = static_cast<std::size_t>(step);
  std::vector<int> mine(width * all, rank + 1), got(width * all);
  std::vector<int> ones(all, 1), places(all), zeros(all);
  std::iota(places.begin(), places.end(), 0);
  MPI_Datatype in = absolute(mine.data(), step), out = absolute(got.data(), step);
  std::vector<MPI_Datatype> ins, outs;
  for (std::size_t peer = 0; peer < all; ++peer) {
    ins.push_back(absolute(&mine[peer * width], step));
    outs.push_back(absolute(&got[peer * width], step));
  }
  const MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Alltoallw(MPI_BOTTOM, ones.data(), zeros.data(), ins.data(), MPI_BOTTOM, ones.data(), zeros.data(), outs.data(),
                comm);
  check(got, step, "alltoallw");
  MPI_Request request;
  MPI_Ialltoallw(MPI_BOTTOM, ones.data(), zeros.data(), ins.data(), MPI_BOTTOM, ones.data(), zeros.data(), outs.data(),
                 comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(got, step, "ialltoallw");
  MPI_Alltoallv(MPI_BOTTOM, ones.data(), places.data(), in, MPI_BOTTOM, ones.data(), places.data(), out, comm);
  check(got, step, "alltoallv");
  MPI_Alltoall(MPI_BOTTOM, 1, in, MPI_BOTTOM, 1, out, comm);
  check(got, step, "alltoall");
  MPI_Allgather(MPI_BOTTOM, 1, in, MPI_BOTTOM, 1, out, comm);
  check(got, step, "allgather");
  MPI_Allgatherv(MPI_BOTTOM, 1, in, MPI_BOTTOM, ones.data(), places.data(), out, comm);
  check(got, step, "allgatherv");
  for (const bool unequal : {false, true}) {
    if (unequal) {
      MPI_Gatherv(MPI_BOTTOM, 1, in, MPI_BOTTOM, ones.data(), places.data(), out, 0, comm);
    } else {
      MPI_Gather(MPI_BOTTOM, 1, in, MPI_BOTTOM, 1, out, 0, comm);
    }
    // What the root has gathered goes to all.
    MPI_Bcast(MPI_BOTTOM, ranks, out, 0, comm);
    check(got, step, unequal ? "gatherv and bcast" : "gather and bcast");
    if (rank == 0) {
      for (std::size_t peer = 0; peer < all; ++peer) mine[peer * width] = static_cast<int>(peer) + 1;
    }
    if (unequal) {
      MPI_Scatterv(MPI_BOTTOM, ones.data(), places.data(), in, MPI_BOTTOM, 1, out, 0, comm);
    } else {
      MPI_Scatter(MPI_BOTTOM, 1, in, MPI_BOTTOM, 1, out, 0, comm);
    }
    expect(got[0] == rank + 1, unequal ? "scatterv with MPI_BOTTOM" : "scatter with MPI_BOTTOM");
    got.assign(got.size(), 0);
    mine.assign(mine.size(), rank + 1);
  }
  for (std::vector<MPI_Datatype>* types : {&ins, &outs}) {
    for (MPI_Datatype& type : *types) MPI_Type_free(&type);
  }
  MPI_Type_free(&in);
  MPI_Type_free(&out);
}

/// Exchanges one element with every rank, far behind the beginning of the buffers.
void exchange_far(char* in, char* out, MPI_Datatype type, std::size_t extent_bytes) {
  constexpr int kFar = 3000;
  const auto all = static_cast<std::size_t>(ranks);
  std::vector<int> ones(all, 1), places(all);
  std::iota(places.begin(), places.end(), kFar);
  const auto at = [&](char* buffer, std::size_t peer) {
    return reinterpret_cast<int*>(buffer + (kFar + peer) * extent_bytes);
  };
  for (std::size_t peer = 0; peer < all; ++peer) *at(in, peer) = 100 * rank + static_cast<int>(peer);
  MPI_Alltoallv(in, ones.data(), places.data(), type, out, ones.data(), places.data(), type, MPI_COMM_WORLD);
  for (std::size_t peer = 0; peer < all; ++peer) {
    expect(*at(out, peer) == 100 * static_cast<int>(peer) + rank, "a block behind 3 GiB");
    *at(out, peer) = 0;
  }
  MPI_Gatherv(at(in, 0), 1, type, out, ones.data(), places.data(), type, ranks - 1, MPI_COMM_WORLD);
  for (std::size_t peer = 0; peer < all && rank == ranks - 1; ++peer) {
    expect(*at(out, peer) == 100 * static_cast<int>(peer), "a gathered block behind 3 GiB");
  }
}

/// `count` elements of `basic` in memory with holes; with kind 0 without.
MPI_Datatype holed(int kind, int count, MPI_Datatype basic) {
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_get_extent(basic, &lower_bound, &extent);
  MPI_Datatype type, inner;
  switch (kind) {
    case 0:
      MPI_Type_contiguous(count, basic, &type);
      break;
    case 1:  // every other one
      MPI_Type_vector(count, 1, 2, basic, &type);
      break;
    case 2: {  // runs of 1, 2, 3, 1, 2, 3, ... with a hole behind each
      std::vector<int> lengths, places;
      for (int done = 0, place = 0; done < count;) {
        lengths.push_back(std::min(static_cast<int>(lengths.size() % 3) + 1, count - done));
        places.push_back(place);
        place += lengths.back() + 1;
        done += lengths.back();
      }
      MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), basic, &type);
      break;
    }
    default:  // backwards: memory runs against the order of elements
      MPI_Type_create_hvector(count, 1, -2 * extent, basic, &inner);
      MPI_Type_create_resized(inner, 0, extent, &type);
      MPI_Type_free(&inner);
  }
  MPI_Type_commit(&type);
  return type;
}

/// What a rank holds in a layout: room before and behind it, and its elements as MPI packs them.
struct Holed {
  std::vector<char> memory;
  char* first;
  MPI_Datatype type;

  Holed(int kind, int count, MPI_Datatype basic) : type(holed(kind, count, basic)) {
    MPI_Aint lower_bound = 0, extent = 0;
    MPI_Type_get_true_extent(type, &lower_bound, &extent);
    memory.assign(static_cast<std::size_t>(extent) + 128, 'x');
    first = memory.data() + 64 - lower_bound;
  }
  Holed(const Holed&) = delete;
  Holed& operator=(const Holed&) = delete;
  ~Holed() { MPI_Type_free(&type); }
  void unpack(const std::vector<char>& packed) {
    int position = 0;
    MPI_Unpack(packed.data(), static_cast<int>(packed.size()), &position, first, 1, type, MPI_COMM_SELF);
  }
};

enum class Form { blocking, non_blocking, persistent };

void broadcast_as(Form form, const Holed& vector, int root, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (form) {
    case Form::blocking:
      MPI_Bcast(vector.first, 1, vector.type, root, comm);
      break;
    case Form::non_blocking:
      MPI_Ibcast(vector.first, 1, vector.type, root, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    case Form::persistent:
      MPIX_Bcast_init(vector.first, 1, vector.type, root, comm, MPI_INFO_NULL, &request);
      for (int turn = 0; turn < 3; ++turn) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      MPI_Request_free(&request);
  }
}

/// One broadcast in which every rank has another layout of the same elements.
void broadcast_holed(Form form, int turn, int count, MPI_Datatype basic) {
  int bytes = 0;
  MPI_Type_size(basic, &bytes);
  std::vector<char> packed(static_cast<std::size_t>(bytes) * static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<char>(i * 31 + i / 255 + turn);
  const int root = turn % ranks;
  Holed got((rank + turn) % 4, count, basic), wanted((rank + turn) % 4, count, basic);
  wanted.unpack(packed);
  if (rank == root) got.unpack(packed);
  broadcast_as(form, got, root, MPI_COMM_WORLD);
  expect(got.memory == wanted.memory, "a broadcast of elements with holes, turn " + std::to_string(turn));
}

}  // namespace

void derived_broadcasts() {
  // Of a struct with elements of two sizes no part may end inside one: such types are packed as a whole.
  MPI_Datatype mixed;
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 2};
  const MPI_Datatype members[] = {MPI_CHAR, MPI_INT};
  MPI_Type_create_struct(2, lengths, places, members, &mixed);
  MPI_Type_commit(&mixed);
  int turn = 0;
  for (const Form form : {Form::blocking, Form::non_blocking, Form::persistent}) {
    for (const MPI_Datatype basic : {MPI_CHAR, MPI_INT, MPI_DOUBLE, MPI_C_DOUBLE_COMPLEX, mixed}) {
      // Packed as a whole, by parts, and by many parts.
      for (const int count : {100, 40'000, 100'003}) broadcast_holed(form, turn++, count, basic);
    }
  }
  MPI_Type_free(&mixed);
}

void absolute_addresses() {
  use_addresses(1);
  use_addresses(3);
}

void empty_calls() {
  const auto all = static_cast<std::size_t>(ranks);
  const MPI_Comm comm = MPI_COMM_WORLD;
  std::vector<int> zeros(all, 0), counts(all, 0), got(all, -1);
  std::vector<MPI_Datatype> types(all, MPI_INT);
  MPI_Datatype nothing;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  // A count of 0 on some ranks, elements without bytes on others: nobody waits for anybody.
  const bool counts_none = rank % 2 == 0;
  MPI_Bcast(nullptr, counts_none ? 0 : 3, counts_none ? MPI_INT : nothing, 0, comm);
  MPI_Gather(nullptr, counts_none ? 0 : 3, counts_none ? MPI_INT : nothing, nullptr, 0, MPI_INT, 0, comm);
  MPI_Alltoall(nullptr, 0, MPI_INT, nullptr, counts_none ? 0 : 3, counts_none ? MPI_INT : nothing, comm);
  MPI_Allreduce(nullptr, nullptr, 0, MPI_INT, MPI_SUM, comm);
  MPI_Alltoallv(nullptr, zeros.data(), zeros.data(), MPI_INT, nullptr, zeros.data(), zeros.data(), nothing, comm);
  MPI_Request requests[4];
  MPI_Ialltoallw(nullptr, zeros.data(), zeros.data(), types.data(), nullptr, zeros.data(), zeros.data(), types.data(),
                 comm, &requests[0]);
  MPI_Iallreduce(nullptr, nullptr, 0, MPI_INT, MPI_SUM, comm, &requests[1]);
  MPI_Igatherv(nullptr, 0, MPI_INT, nullptr, zeros.data(), zeros.data(), MPI_INT, 0, comm, &requests[2]);
  MPI_Iscatter(nullptr, 0, MPI_INT, nullptr, 0, MPI_INT, 0, comm, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  // Only the last rank has something.
  counts.back() = 1;
  const int own = counts[static_cast<std::size_t>(rank)];
  MPI_Allgatherv(own == 0 ? nullptr : &rank, own, MPI_INT, got.data(), counts.data(), zeros.data(), MPI_INT, comm);
  expect(got[0] == ranks - 1, "allgatherv of one block");
  int sum = -1;
  MPI_Reduce_scatter(&rank, own == 0 ? nullptr : &sum, counts.data(), MPI_INT, MPI_SUM, comm);
  expect(sum == (own == 0 ? -1 : ranks * (ranks - 1) / 2), "reduce_scatter of one block");
  MPI_Type_free(&nothing);
}

void refused_calls() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  // Open MPI 4.1 calls the handler of MPI_COMM_WORLD for the requests of collectives.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  make_teams(comm);
  constexpr int kCount = 100;
  std::vector<int> in(kCount + static_cast<std::size_t>(ranks)), out(in.size());
  MPI_Request differs = MPI_REQUEST_NULL;
  int error = MPI_Iallreduce(in.data(), out.data(), kCount + rank, MPI_INT, MPI_SUM, comm, &differs);
  if (error == MPI_SUCCESS) error = MPI_Wait(&differs, MPI_STATUS_IGNORE);
  expect(error != MPI_SUCCESS, "an iallreduce with another count on every rank");
  // All further non-blocking calls of the group are refused.
  for (int call = 0; call < 3; ++call) {
    MPI_Request request = differs;
    if (call == 0) error = MPI_Ibarrier(comm, &request);
    if (call == 1) error = MPI_Ibcast(in.data(), kCount, MPI_INT, 0, comm, &request);
    if (call == 2) error = MPI_Iallreduce(in.data(), out.data(), kCount, MPI_INT, MPI_SUM, comm, &request);
    expect(error != MPI_SUCCESS, "a call after a failed one");
    expect(request == MPI_REQUEST_NULL, "a refused call leaves a request behind");
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "waiting for the request of a refused call");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

void far_places() {
  constexpr std::size_t kExtentBytes = std::size_t{1} << 20;
  constexpr std::size_t kBytes = 3100 * kExtentBytes;
  void* memory[2];
  for (void*& each : memory) {
    each = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    expect(each != MAP_FAILED, "no address space");
  }
  MPI_Datatype whole, apart;
  MPI_Type_contiguous(static_cast<int>(kExtentBytes / sizeof(int)), MPI_INT, &whole);
  MPI_Type_create_resized(MPI_INT, 0, static_cast<MPI_Aint>(kExtentBytes), &apart);
  for (MPI_Datatype* type : {&whole, &apart}) {
    MPI_Type_commit(type);
    exchange_far(static_cast<char*>(memory[0]), static_cast<char*>(memory[1]), *type, kExtentBytes);
    MPI_Type_free(type);
  }
  for (void* each : memory) munmap(each, kBytes);
}

}  // namespace torii::clients
