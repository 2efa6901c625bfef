// SPDX-License-Identifier: Apache-2.0
// The cases of mpi_semantics about the ids of groups, by which torii founds teams: an id that comes to another group
// while an older one is still alive elsewhere, and thousands of groups at once.
#include <mpi.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/clients/semantics.hpp"

namespace torii::clients {
namespace {

/// The group of the first `count` ranks, made by these alone.
MPI_Comm first_ranks(int count) {
  MPI_Group all, some;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  int range[1][3] = {{0, count - 1, 1}};
  MPI_Group_range_incl(all, 1, range, &some);
  MPI_Comm comm;
  MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &comm);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return comm;
}

/// Non-blocking and persistent operations have teams, too.
void use_all_teams(MPI_Comm comm, int members) {
  int in = 1;
  int out = 0;
  MPI_Request request;
  for (int call = 0; call < 2; ++call) {
    MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(out == members, "a non-blocking sum");
    expect(sum_over(comm, 1) == members, "a sum");
  }
}

/// Memory of this process, and its share of what it shares with others, in KiB.
struct Resident {
  long own = 0;
  long shared = 0;
};
Resident resident() {
  Resident found;
  std::ifstream sums("/proc/self/smaps_rollup");
  for (std::string word; sums >> word;) {
    if (word == "Pss_Anon:") sums >> found.own;
    if (word == "Pss_Shmem:") sums >> found.shared;
  }
  return found;
}

}  // namespace

/// The last rank frees a group only when the others have made, used and freed another one of the same id. Freeing does
/// not wait in Open MPI.
void reused_ids() {
  const int last = ranks - 1;
  int reused = 0;
  for (int round = 0; round < 40; ++round) {
    MPI_Comm whole;
    MPI_Comm_dup(MPI_COMM_WORLD, &whole);
    use_all_teams(whole, ranks);
    const MPI_Fint id = MPI_Comm_c2f(whole);
    if (rank != last) {
      MPI_Comm_free(&whole);
      MPI_Comm some = first_ranks(last);
      reused += MPI_Comm_c2f(some) == id ? 1 : 0;
      use_all_teams(some, last);
      MPI_Comm_free(&some);
      if (rank == 0) MPI_Send(&round, 1, MPI_INT, last, 0, MPI_COMM_WORLD);
    } else {
      int told = -1;
      MPI_Recv(&told, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      use_all_teams(MPI_COMM_SELF, 1);
      MPI_Comm_free(&whole);
    }
  }
  expect(rank == last || ranks == 2 || reused == 40, "an id was not used again");
}

/// Four thousand groups at once, each with a team. Says how much memory each team takes of a rank.
void thousands_alive() {
  constexpr int kGroups = 4000;
  constexpr long kKibMost = 64;
  expect(sum_over(MPI_COMM_WORLD, 1) == ranks, "a sum before");
  std::vector<MPI_Comm> all(kGroups);
  for (MPI_Comm& comm : all) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const Resident before = resident();
  for (const MPI_Comm comm : all) expect(sum_over(comm, 1) == ranks, "a sum of one of many");
  const Resident after = resident();
  for (const MPI_Comm comm : all)
    expect(sum_over(comm, rank) == ranks * (ranks - 1) / 2, "a sum of one of many, again");
  for (MPI_Comm& comm : all) MPI_Comm_free(&comm);
  const long own = (after.own - before.own) / kGroups;
  const long shared = (after.shared - before.shared) / kGroups;
  if (rank == 0) std::printf("each of %d teams: %ld KiB own, %ld KiB shared\n", kGroups, own, shared);
  expect(own + shared <= kKibMost, "a team takes " + std::to_string(own + shared) + " KiB");
}

}  // namespace torii::clients
