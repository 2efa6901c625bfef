// SPDX-License-Identifier: Apache-2.0
// An MPI program that makes random collective calls with coll/torii and without it, and compares every byte:
//   mpirun -n RANKS differential_fuzz CASES SEED [say]
// With `say` every rank names its cases on stderr before it makes them.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/clients/fuzz_case.hpp"

namespace torii::clients {
namespace {

/// The same group twice: with what Open MPI selects, and without torii. Both MPI_COMM_NULL on ranks outside it.
struct Twins {
  MPI_Comm with = MPI_COMM_NULL;
  MPI_Comm without = MPI_COMM_NULL;
};

Twins make_twins(int color, int key) {
  Twins twins;
  MPI_Comm_split(MPI_COMM_WORLD, color, key, &twins.with);
  if (twins.with == MPI_COMM_NULL) return twins;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "ompi_comm_coll_preference", "^torii");
  MPI_Comm_dup_with_info(twins.with, info, &twins.without);
  MPI_Info_free(&info);
  // torii takes non-blocking calls of a group after its first blocking one; one that came before is libnbc's.
  MPI_Request early;
  MPI_Ibarrier(twins.with, &early);
  MPI_Barrier(twins.with);
  MPI_Wait(&early, MPI_STATUS_IGNORE);
  return twins;
}

void free_twins(Twins& twins) {
  if (twins.with != MPI_COMM_NULL) MPI_Comm_free(&twins.with);
  if (twins.without != MPI_COMM_NULL) MPI_Comm_free(&twins.without);
}

std::vector<Twins> standing_twins(int rank, int ranks) {
  std::vector<Twins> all;
  all.push_back(make_twins(0, rank));
  all.push_back(make_twins(0, -rank));
  if (ranks >= 3) all.push_back(make_twins(rank == ranks - 1 ? MPI_UNDEFINED : 0, rank));
  if (ranks >= 4) all.push_back(make_twins(rank % 2, rank));
  return all;
}

int run(int cases, std::uint64_t seed, bool says) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* const enabled = std::getenv("OMPI_MCA_coll_torii_enable");
  const bool has_torii = enabled != nullptr && std::string(enabled) == "1";
  make_user_operations();
  std::vector<Twins> standing = standing_twins(rank, ranks);
  for (int number = 0; number < cases; ++number) {
    Random random(seed + static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15ULL);
    Twins& chosen = standing[random() % standing.size()];
    const bool is_fresh = draw(random, 0, 24) == 0;
    Twins fresh;
    if (is_fresh) fresh = make_twins(draw(random, 0, 2) == 0 ? rank % 2 : 0, draw(random, 0, 1) == 0 ? rank : -rank);
    Twins& twins = is_fresh ? fresh : chosen;
    if (twins.with != MPI_COMM_NULL) {
      int members = 0;
      MPI_Comm_size(twins.without, &members);
      const Case call = draw_case(random, members);
      if (says) std::fprintf(stderr, "rank %d: case %d: %s\n", rank, number, call.text().c_str());
      const bool frees = is_fresh && has_torii && is_torii_request(call, members);
      const std::string difference = compare(call, &twins.with, twins.without, frees);
      if (!difference.empty()) {
        std::printf("rank %d: case %d of seed %llu: %s on %d ranks: %s differs\n", rank, number,
                    static_cast<unsigned long long>(seed), call.text().c_str(), members, difference.c_str());
        std::fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
    }
    if (is_fresh) free_twins(fresh);
  }
  for (Twins& twins : standing) free_twins(twins);
  free_user_operations();
  if (rank == 0) std::printf("%d cases of seed %llu: no difference\n", cases, static_cast<unsigned long long>(seed));
  return 0;
}

}  // namespace
}  // namespace torii::clients

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: differential_fuzz CASES SEED [say], started by mpirun\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  const int code = torii::clients::run(std::atoi(argv[1]), std::strtoull(argv[2], nullptr, 10), argc == 4);
  MPI_Finalize();
  return code;
}
