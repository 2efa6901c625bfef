// SPDX-License-Identifier: Apache-2.0
// A rank that makes calls of ever other shapes: what test_memory starts. Rank 0 prints by how many KiB the memory of
// the rank that has grown most has grown since its first shapes, among which were the longest of all.
#include <torii/torii.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kCountMost = 16384;  ///< elements of a block
constexpr int kFirst = 10;                 ///< so many shapes are the longest, of each collective at least one

/// What this process alone has, and its share of what it shares.
std::int64_t own_kib() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Pss:")) return std::strtoll(line.c_str() + 4, nullptr, 10);
  }
  return -1;
}

struct Rank {
  torii_team* team;
  std::size_t ranks;
  std::vector<float> from;
  std::vector<float> to;

  torii_status call(std::uint64_t kind, std::size_t count, int root) {
    switch (kind % 8) {
      case 0:
        return torii_allreduce(team, from.data(), to.data(), count, TORII_F32, TORII_SUM);
      case 1:
        return torii_broadcast(team, to.data(), count, TORII_F32, root);
      case 2:
        return torii_reduce(team, from.data(), to.data(), count, TORII_F32, TORII_MAX, root);
      case 3:
        return torii_alltoall(team, from.data(), to.data(), count, TORII_F32);
      case 4:
        return torii_all_gather(team, from.data(), to.data(), count, TORII_F32);
      case 5:
        return torii_scatter(team, from.data(), to.data(), count, TORII_F32, root);
      case 6:
        return torii_gather(team, from.data(), to.data(), count, TORII_F32, root);
      default:
        return torii_scan(team, from.data(), to.data(), count, TORII_F32, TORII_SUM);
    }
  }
};

int fail(const char* what) {
  std::printf("%s: %s\n", what, torii_last_error());
  return 1;
}

}  // namespace

/// shapes_rank SHAPES
int main(int argc, char** argv) {
  const int shapes = argc > 1 ? std::atoi(argv[1]) : 0;
  torii_context_options options = {};
  options.size = sizeof(options);
  torii_context* context = nullptr;
  if (torii_context_create(&options, &context) != TORII_OK) return fail("context");
  torii_team* team = nullptr;
  if (torii_team_create(context, nullptr, &team) != TORII_OK) return fail("team");
  const auto ranks = static_cast<std::size_t>(torii_team_ranks(team));
  Rank rank = {team, ranks, std::vector<float>(ranks * kCountMost, 1), std::vector<float>(ranks * kCountMost, 1)};
  std::mt19937 random(1);  // equal on all ranks
  std::int64_t before_kib = 0;
  for (int i = 0; i < shapes; ++i) {
    const bool is_longest = i < kFirst;
    const std::size_t bits = 1 + random() % 14;
    const std::size_t count = is_longest ? kCountMost : 1 + random() % (std::size_t{1} << bits);
    const int root = static_cast<int>(random() % ranks);
    if (rank.call(is_longest ? static_cast<std::uint64_t>(i) : random(), count, root) != TORII_OK) return fail("call");
    if (i + 1 == kFirst) before_kib = own_kib();
  }
  double grown_kib = static_cast<double>(own_kib() - before_kib);
  double most_kib = 0;
  if (torii_allreduce(team, &grown_kib, &most_kib, 1, TORII_F64, TORII_MAX) != TORII_OK) return fail("allreduce");
  if (torii_team_rank(team) == 0) std::printf("a rank has grown by %.0f KiB\n", most_kib);
  torii_team_destroy(team);
  torii_context_destroy(context);
  return 0;
}
