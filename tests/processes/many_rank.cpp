// SPDX-License-Identifier: Apache-2.0
// One of many ranks on few CPUs: makes one call of each kind and checks the results. What test_many_ranks starts.
#include <sys/resource.h>
#include <torii/torii.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

int rank = -1;

void check(torii_status status, const char* what) {
  if (status == TORII_OK) return;
  std::fprintf(stderr, "rank %d: %s: %s: %s\n", rank, what, torii_status_name(status), torii_last_error());
  std::exit(1);
}

void expect(bool is_right, const char* what) {
  if (is_right) return;
  std::fprintf(stderr, "rank %d: %s: wrong data\n", rank, what);
  std::exit(1);
}

void exchange(torii_team* team, std::int64_t ranks) {
  std::vector<std::int64_t> to;
  std::vector<std::int64_t> from(static_cast<std::size_t>(ranks), -1);
  for (std::int64_t peer = 0; peer < ranks; ++peer) to.push_back(rank * ranks + peer);
  check(torii_alltoall(team, to.data(), from.data(), 1, TORII_I64), "alltoall");
  for (std::int64_t peer = 0; peer < ranks; ++peer) {
    expect(from[static_cast<std::size_t>(peer)] == peer * ranks + rank, "alltoall");
  }
}

void sum(torii_team* team, std::int64_t ranks, std::size_t count) {
  std::vector<std::int64_t> own;
  std::vector<std::int64_t> all(count, -1);
  for (std::size_t i = 0; i < count; ++i) own.push_back(rank + static_cast<std::int64_t>(i));
  check(torii_allreduce(team, own.data(), all.data(), count, TORII_I64, TORII_SUM), "allreduce");
  for (std::size_t i = 0; i < count; ++i) {
    expect(all[i] == ranks * (ranks - 1) / 2 + ranks * static_cast<std::int64_t>(i), "allreduce");
  }
}

}  // namespace

/// many_rank [ordinary FILES]: as a user without privileges, with this limit of open files.
int main(int argc, char** argv) {
  if (argc == 3) {
    const auto files = static_cast<rlim_t>(std::atoi(argv[2]));
    const rlimit limit = {files, files};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || (geteuid() == 0 && setuid(65534) != 0)) return 77;
  }
  torii_context* context = nullptr;
  check(torii_context_create(nullptr, &context), "context");
  rank = torii_context_rank(context);
  const std::int64_t ranks = torii_context_ranks(context);
  torii_team* team = nullptr;
  check(torii_team_create(context, nullptr, &team), "team");
  check(torii_barrier(team), "barrier");
  exchange(team, ranks);
  sum(team, ranks, 1);
  sum(team, ranks, 8192);
  check(torii_barrier(team), "barrier");
  if (rank == 0) std::printf("right on %d ranks\n", static_cast<int>(ranks));
  check(torii_team_destroy(team), "team's end");
  check(torii_context_destroy(context), "context's end");
  return 0;
}
