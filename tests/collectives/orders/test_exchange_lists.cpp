// SPDX-License-Identifier: Apache-2.0
// Every exchange list leads each rank to every other rank once, each transfer is a permutation, and ways are the
// shortest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "collectives/orders/exchange_lists.hpp"
#include "runtime/base/status.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr ExchangeOrder kOrders[] = {ExchangeOrder::a2a, ExchangeOrder::a2and, ExchangeOrder::a2at_printed,
                                     ExchangeOrder::a2at};

/// Every transfer is a permutation of the ranks, and the receivers of `rank` are all others.
void expect_alltoall(ExchangeOrder order, const Topology& topology) {
  const ExchangeList& list = exchange_list(order, topology);
  const auto ranks = static_cast<std::size_t>(topology.ranks());
  const std::string what =
      std::string(name(order)) + " of " + topology.text() + ", " + std::to_string(ranks) + " ranks";
  ASSERT_EQ(list.transfers, ranks - 1) << what;
  std::vector<std::size_t> receives(ranks * ranks, 0);
  for (std::size_t transfer = 0; transfer < list.transfers; ++transfer) {
    std::vector<bool> is_taken(ranks, false);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const int to = receiver(topology, list, static_cast<int>(rank), transfer);
      ASSERT_TRUE(to >= 0 && to < topology.ranks()) << what << ": transfer " << transfer << " leads to " << to;
      ASSERT_FALSE(is_taken[static_cast<std::size_t>(to)])
          << what << ": two send to " << to << " with transfer " << transfer;
      is_taken[static_cast<std::size_t>(to)] = true;
      ++receives[rank * ranks + static_cast<std::size_t>(to)];
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t to = 0; to < ranks; ++to) {
      ASSERT_EQ(receives[rank * ranks + to], rank == to ? 0U : 1U) << what << ": " << rank << " to " << to;
    }
  }
}

/// The hops of every message end at its receiver's node and are the fewest.
void expect_shortest_ways(ExchangeOrder order, const Topology& topology) {
  const ExchangeList& list = exchange_list(order, topology);
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    for (std::size_t transfer = 0; transfer < list.transfers; ++transfer) {
      const Coordinates from = topology.coordinates(rank);
      const Coordinates to = topology.coordinates(receiver(topology, list, rank, transfer));
      const Coordinates hops = exchange_hops(topology, list, rank, transfer);
      for (int d = 0; d < 3; ++d) {
        const auto i = static_cast<std::size_t>(d);
        const int extent = topology.extents()[i];
        const int program = std::abs(to[i] - from[i]);
        ASSERT_EQ((from[i] + hops[i] + extent) % extent, to[i]) << topology.text() << " transfer " << transfer;
        ASSERT_EQ(std::abs(hops[i]), topology.wraps(d) ? std::min(program, extent - program) : program)
            << name(order) << " of " << topology.text() << " rank " << rank << " transfer " << transfer;
      }
    }
  }
}

Topology random_topology(std::mt19937_64& random) {
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  const int dimensions = 1 + below(3);
  Coordinates extents = {1, 1, 1};
  for (int d = 0; d < dimensions; ++d) extents[static_cast<std::size_t>(d)] = 1 + below(dimensions == 3 ? 6 : 12);
  return Topology::torus(extents, {random() % 2 == 0, random() % 2 == 0, random() % 2 == 0}, dimensions, 1 + below(3));
}

TEST(ExchangeLists, LeadEverywhereOnceOnFlatShapes) {
  const int most = is_full() ? 16 : 7;
  for (int x = 1; x <= most; ++x) {
    for (int y = 1; y <= most; ++y) {
      for (const bool wraps : {true, false}) {
        const Topology topology = Topology::torus({x, y, 1}, {wraps, wraps, false}, 2);
        for (const ExchangeOrder order : kOrders) expect_alltoall(order, topology);
      }
    }
  }
}

TEST(ExchangeLists, LeadEverywhereOnceOnRandomShapes) {
  for (const Seed& seed : seeds_of("exchange_lists_test", is_full() ? 500 : 24)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    const Topology topology = random_topology(random);
    for (const ExchangeOrder order : kOrders) {
      if (!why_no_exchange_list(order, topology).empty()) continue;
      expect_alltoall(order, topology);
      expect_shortest_ways(order, topology);
    }
  }
}

TEST(ExchangeLists, ANodeIsARotation) {
  for (const int ranks : {1, 2, 3, 8, 17}) {
    const Topology topology = Topology::node(ranks);
    for (const ExchangeOrder order : kOrders) {
      expect_alltoall(order, topology);
      const ExchangeList& list = exchange_list(order, topology);
      for (std::size_t transfer = 0; transfer < list.transfers; ++transfer) {
        EXPECT_EQ(receiver(topology, list, 0, transfer), static_cast<int>(transfer) + 1);
        EXPECT_EQ(exchange_hops(topology, list, 0, transfer), (Coordinates{0, 0, 0}));
      }
    }
  }
}

TEST(ExchangeLists, ThePapersOrderIsRefusedWhereThereIsNone) {
  for (const Topology& topology : {Topology::torus({3, 3, 3}), Topology::torus({4, 4, 1}, {true, false, false}, 2)}) {
    try {
      exchange_list(ExchangeOrder::a2at_printed, topology);
      ADD_FAILURE() << topology.text();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::unsupported);
      EXPECT_NE(std::string(error.what()).find(topology.text()), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(why_no_exchange_list(ExchangeOrder::a2at_printed, Topology::torus({5, 1, 4})), "");
}

TEST(ExchangeLists, AreMadeOnceForAllThreads) {
  const Topology topology = Topology::torus({7, 5, 3});
  std::vector<const ExchangeList*> found(4, nullptr);
  std::vector<std::thread> threads;
  for (const ExchangeList*& list : found) {
    threads.emplace_back([&list, &topology] { list = &exchange_list(ExchangeOrder::a2at, topology); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ExchangeList* list : found) EXPECT_EQ(list, found[0]);
}

}  // namespace
}  // namespace torii::tests
