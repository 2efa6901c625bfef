// SPDX-License-Identifier: Apache-2.0
// One random collective call, made twice.
#pragma once

#include <string>
#include <vector>

#include "tests/clients/fuzz_types.hpp"

namespace torii::clients {

enum class Collective : std::uint8_t {
  barrier,
  bcast,
  reduce,
  allreduce,
  reduce_scatter_block,
  reduce_scatter,
  scan,
  exscan,
  allgather,
  allgatherv,
  gather,
  gatherv,
  scatter,
  scatterv,
  alltoall,
  alltoallv,
  alltoallw,
};
inline constexpr int kCollectives = 17;

enum class Form : std::uint8_t { blocking, non_blocking, persistent };

const char* name(Collective collective);

/// Equal on all ranks of the group: drawn from the seed of the case.
struct Case {
  Collective collective = Collective::barrier;
  Basic basic = {};
  int shape = 0;  ///< of reductions; of the others each rank draws its own
  int user = 0;   ///< 0: predefined, 1: a sum that commutes, 2: affine maps, which do not
  Operation op = {};
  int root = 0;
  int count = 0;            ///< elements of reductions, else units of Layout::kUnit basic elements
  std::vector<int> counts;  ///< of the v forms, per rank
  bool in_place = false;
  Form form = Form::blocking;
  int twice = 1;  ///< how many calls are in flight; a persistent one is started so often
  bool test = false;
  std::uint64_t data_seed = 0;
  std::string text() const;
};

/// Whether torii takes the call as a non-blocking or persistent one, on a group of so many ranks. Such calls may do
/// what MPI allows and libnbc, which gets the others and all of groups of one rank, does not survive: their MPI_Comm
/// freed while they are in flight, elements with a true lower bound above 0.
bool is_torii_request(const Case& call, int ranks);

Case draw_case(Random& random, int ranks);

/// Makes the call on `with`, and as a blocking one on `without`, of equal groups. Returns "" or what differs. Frees
/// `with` while its calls are in flight when `frees` says so.
std::string compare(const Case& call, MPI_Comm* with, MPI_Comm without, bool frees);

}  // namespace torii::clients
