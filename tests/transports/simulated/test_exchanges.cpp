// SPDX-License-Identifier: Apache-2.0
// Pairwise exchanges on virtual time: what arrives, and how near they come to what the links can carry.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/topology/routing.hpp"
#include "tests/transports/simulated/calls.hpp"

namespace torii::simulated {
namespace {

/// Each byte says which rank it comes from, for which it is, and where it stands.
TEST(Exchanges, RunWithAndWithoutData) {
  PlanRequest request = request_on("torus:4x2", 8, 1 << 10, Collective::alltoall);
  constexpr std::size_t kBlock = 5000;
  Call call = make_call("a2at", request, 8 * kBlock, Type::u8);
  const Outcome symbolic = run(call);
  // Seven blocks leave each rank over at most three links at once.
  EXPECT_GT(microseconds(symbolic), 7.0 * kBlock / 3 / 5e3);
  call.fill = [&](int rank, std::byte* out) {
    for (std::size_t i = 0; i < 8 * kBlock; ++i) {
      out[i] = static_cast<std::byte>(7 * static_cast<std::size_t>(rank) + 31 * (i / kBlock) + i % kBlock % 13);
    }
  };
  const Outcome real = run(call);
  EXPECT_EQ(real.time, symbolic.time);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    for (std::size_t i = 0; i < 8 * kBlock; i += 97) {
      ASSERT_EQ(real.results[rank][i], static_cast<std::byte>(7 * (i / kBlock) + 31 * rank + i % kBlock % 13))
          << "rank " << rank << ", byte " << i;
    }
  }
}

/// Where the sender may choose, an alltoall's list keeps all links of an even torus busy: its bound is reached, and
/// what comes out is the same. Where the network chooses, the busiest link has half as much again to carry.
TEST(Exchanges, ReachTheirBoundWhereTiesAreSelected) {
  constexpr std::size_t kBytes = 16 << 18;
  const auto time_us = [](const char* topology, const char* algorithm, Collective collective, std::size_t bytes) {
    Call call = make_call(algorithm, request_on(topology, 16, 1 << 14, collective), bytes);
    call.network.alpha_us = 0;
    call.network.overhead_us = 0;
    return microseconds(run(call));
  };
  const double bound_us = 8 * static_cast<double>(kBytes / 16) / 5e3;  // the busiest link carries 8 blocks at 5 GB/s
  EXPECT_LT(time_us("torus:4x4,ties", "a2at", Collective::alltoall, kBytes), 1.02 * bound_us);
  EXPECT_GT(time_us("torus:4x4", "a2at", Collective::alltoall, kBytes), 1.5 * bound_us);
  EXPECT_LT(time_us("torus:16,ties", "recursive_doubling", Collective::allreduce, 1 << 16),
            0.9 * time_us("torus:16", "recursive_doubling", Collective::allreduce, 1 << 16));
}

/// The time of the link that has most to carry, in us.
double busiest_link_us(const Call& call, const NetworkModel& network) {
  std::vector<double> bytes;
  std::vector<LinkId> route;
  const int ranks = static_cast<int>(call.plans.size());
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (to == from) continue;
      route.clear();
      append_network_route(network.topology, from, to, 0, route);
      for (const LinkId link : route) {
        if (bytes.size() <= static_cast<std::size_t>(link)) bytes.resize(static_cast<std::size_t>(link) + 1, 0);
        bytes[static_cast<std::size_t>(link)] +=
            static_cast<double>(call.blocks[static_cast<std::size_t>(from)].send_bytes[static_cast<std::size_t>(to)]);
      }
    }
  }
  return *std::max_element(bytes.begin(), bytes.end()) / (network.bandwidth_GBps * 1e3);
}

/// An alltoallv in which one rank gets much more than the others: nobody waits for it but those who have yet to send to
/// it, so the link that has most to carry is never idle for long.
TEST(Exchanges, AHotReceiverHoldsUpNobodyElse) {
  constexpr int kRanks = 16;
  for (const std::size_t hot_bytes : {std::size_t{256} << 10, std::size_t{1} << 20}) {
    for (const char* topology : {"node", "torus:4x4"}) {
      Call call = make_call(topology == std::string("node") ? "direct" : "a2at",
                            request_on(topology, kRanks, 16384, Collective::alltoall), kRanks * 16384);
      call.blocks.resize(kRanks);
      for (std::size_t rank = 0; rank < kRanks; ++rank) {
        ExchangeBlocks& blocks = call.blocks[rank];
        for (std::size_t peer = 0; peer < kRanks; ++peer) {
          blocks.send_bytes.push_back(peer == 5 ? hot_bytes : 65536);
          blocks.take_bytes.push_back(rank == 5 ? hot_bytes : 65536);
        }
        blocks.send_offsets.assign(kRanks, 0);
        blocks.take_offsets.assign(kRanks, 0);
      }
      const double bound_us = busiest_link_us(call, call.network);
      const double us = microseconds(run(call));
      EXPECT_GE(us, bound_us) << topology << " " << hot_bytes;
      EXPECT_LE(us, 1.2 * bound_us) << topology << " " << hot_bytes;
      RecordProperty(std::string(topology) + "_" + std::to_string(hot_bytes), std::to_string(us / bound_us));
    }
  }
}

}  // namespace
}  // namespace torii::simulated
