// SPDX-License-Identifier: Apache-2.0
// The same bits on every transport: all rows of the catalogue, all collectives, several lengths, over shared memory and
// every fabric that runs without hardware. Each rank is a thread, and over a fabric a node of its own.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "collectives/selection/catalogue.hpp"
#include "tests/conformance/combine.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr torii_collective kCollectives[] = {TORII_BARRIER,   TORII_BROADCAST,  TORII_REDUCE,
                                             TORII_ALLREDUCE, TORII_ALL_GATHER, TORII_REDUCE_SCATTER,
                                             TORII_SCAN,      TORII_EXSCAN,     TORII_ALLTOALL};

/// Algorithm, topology, collective, elements, rank: a hash of what the rank holds afterwards.
using Hashes = std::map<std::tuple<std::string, std::string, int, std::size_t, int>, std::size_t>;

struct Fabric {
  std::string name;
  std::string settings;
};

std::vector<Fabric> fabrics() {
  std::vector<Fabric> all;
#ifdef TORII_TEST_LIBFABRIC
  all.push_back({"libfabric_tcp_ofi_rxm", "TRANSPORT=libfabric\nPROVIDER=tcp;ofi_rxm"});
  all.push_back({"libfabric_net", "TRANSPORT=libfabric\nPROVIDER=net"});
  all.push_back({"libfabric_shm", "TRANSPORT=libfabric\nPROVIDER=shm"});
#endif
#ifdef TORII_TEST_UCX
  all.push_back({"ucx_tcp", "TRANSPORT=ucx\nPROVIDER=tcp"});
  all.push_back({"ucx_posix", "TRANSPORT=ucx\nPROVIDER=posix"});
#endif
  return all;
}

/// The torus that so many ranks stand on beside the node.
std::string torus_of(int ranks) {
  static const std::map<int, std::string> kShapes = {{2, "torus:2"},    {3, "torus:3"},   {4, "torus:2x2"},
                                                     {5, "mesh:5"},     {6, "torus:3x2"}, {7, "torus:7"},
                                                     {8, "mesh:2x2x2"}, {9, "torus:3x3"}};
  return kShapes.at(ranks);
}

/// What this rank holds after the call; 0 where the algorithm does not serve the collective.
std::size_t run_one(torii_team* team, torii_collective collective, std::size_t count) {
  const int root = static_cast<int>(count % static_cast<std::size_t>(torii_team_ranks(team)));
  CellCall call(team, {collective, TORII_F32, TORII_SUM, count, root});
  if (!is_served(team, call.call())) return 0;
  EXPECT_EQ(torii_run(team, &call.call()), TORII_OK) << torii_last_error();
  const std::string_view bytes(reinterpret_cast<const char*>(call.result().data()), call.result().size());
  return std::hash<std::string_view>()(bytes) | 1;
}

Hashes hashes_over(const std::string& settings, int ranks) {
  Hashes hashes;
  std::mutex mutex;
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=1G\nTIMEOUT=30\nENGINES=2\n" + settings;
  const std::vector<std::size_t> counts =
      is_full() ? std::vector<std::size_t>{1, 14, 257, 4000, 40'000} : std::vector<std::size_t>{14, 20'000};
  run_as_threads(options, [&](torii_context* context, torii_team*) {
    for (const Algorithm& algorithm : catalogue()) {
      for (const std::string& topology : {std::string("node"), torus_of(ranks)}) {
        const std::string name(algorithm.name);
        torii_team_options own = {};
        own.size = sizeof(own);
        own.topology = topology.c_str();
        own.algorithm = name.c_str();
        own.segment_bytes = 4096;
        torii_team* team = nullptr;
        ASSERT_EQ(torii_team_create(context, &own, &team), TORII_OK) << torii_last_error();
        for (const torii_collective collective : kCollectives) {
          // They differ from direct in the order of their lists only.
          if (collective == TORII_ALLTOALL && name.starts_with("a2a")) continue;
          for (const std::size_t count : counts) {
            const std::size_t hash = run_one(team, collective, count);
            if (::testing::Test::HasFailure()) return;
            const std::lock_guard lock(mutex);
            if (hash != 0) hashes[{name, topology, collective, count, torii_team_rank(team)}] = hash;
          }
        }
        EXPECT_EQ(torii_team_destroy(team), TORII_OK) << torii_last_error();
      }
    }
  });
  return hashes;
}

class Fabrics : public ::testing::TestWithParam<int> {};

TEST_P(Fabrics, GiveTheBitsOfSharedMemory) {
  const int ranks = GetParam();
  const Hashes expected = hashes_over("TRANSPORT=shared_memory", ranks);
  ASSERT_GE(expected.size(), static_cast<std::size_t>(ranks) * 20);
  for (const auto& [key, hash] : expected) {
    const auto& [algorithm, topology, collective, count, rank] = key;
    if (collective != TORII_ALLTOALL) continue;
    ASSERT_EQ(hash, expected.at({"direct", topology, collective, count, rank})) << algorithm << " on " << topology;
  }
  for (const Fabric& fabric : fabrics()) {
    const Hashes got = hashes_over(fabric.settings, ranks);
    ASSERT_EQ(got.size(), expected.size()) << fabric.name;
    for (const auto& [key, hash] : expected) {
      ASSERT_EQ(got.at(key), hash) << fabric.name << ": " << std::get<0>(key) << " on " << std::get<1>(key)
                                   << ", collective " << std::get<2>(key) << " of " << std::get<3>(key) << ", rank "
                                   << std::get<4>(key) << " of " << ranks;
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Fabrics,
                         ::testing::ValuesIn(is_full() ? std::vector<int>{2, 3, 4, 5, 6, 7, 8, 9}
                                                       : std::vector<int>{3}));

}  // namespace
}  // namespace torii::tests
