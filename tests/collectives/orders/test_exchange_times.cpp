// SPDX-License-Identifier: Apache-2.0
// How near the orders come to the bound of alltoall in the network model, by both kinds of sharing.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "collectives/orders/exchange_lists.hpp"
#include "runtime/topology/network_model.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr Sharing kSharings[] = {Sharing::min, Sharing::maxmin};
constexpr double kExact = 1e-6;

double time_of(ExchangeOrder order, const Topology& topology, int controllers, Sharing sharing) {
  const ExchangeList& list = exchange_list(order, topology, controllers);
  ExchangeRun run;
  run.controllers = controllers;
  run.sharing = sharing;
  return simulate_exchange(topology, exchange_traffic(topology, list), run).time;
}

/// Over the bound, by the kind of sharing that suits the order less.
double worst_ratio(const Topology& topology, int controllers) {
  double worst = 0;
  for (const Sharing sharing : kSharings) {
    worst = std::max(worst, time_of(ExchangeOrder::a2at, topology, controllers, sharing) / alltoall_bound(topology));
  }
  return worst;
}

TEST(ExchangeTimes, MeshListsReachTheBoundWithTwoControllers) {
  for (int x = 2; x <= 12; ++x) {
    for (int y = 2; y <= 12; ++y) {
      const Topology topology = Topology::torus({x, y, 1}, {false, false, false}, 2);
      for (const Sharing sharing : kSharings) {
        EXPECT_NEAR(time_of(ExchangeOrder::a2at, topology, 2, sharing), alltoall_bound(topology), kExact)
            << topology.text() << " " << name(sharing);
      }
    }
  }
}

/// With unsplit messages nothing is quicker on 2 mod 4 columns and an odd number of rows: the ties of one column carry
/// half a message more one way than the other.
double torus_excess(int x, int y) {
  const int longer = std::max(x, y);
  const int shorter = std::min(x, y);
  return longer % 4 == 2 && shorter % 2 == 1 ? 0.5 : 0;
}

TEST(ExchangeTimes, TorusListsReachTheBoundWithFourControllers) {
  for (int x = 2; x <= 16; ++x) {
    for (int y = 2; y <= 16; ++y) {
      const Topology topology = Topology::torus({x, y, 1}, {true, true, false}, 2);
      for (const Sharing sharing : kSharings) {
        EXPECT_NEAR(time_of(ExchangeOrder::a2at, topology, 4, sharing), alltoall_bound(topology) + torus_excess(x, y),
                    kExact)
            << topology.text() << " " << name(sharing);
      }
    }
  }
}

TEST(ExchangeTimes, CubesReachTheBound) {
  for (int extent = 2; extent <= 10; ++extent) {
    const Topology topology = Topology::torus({extent, extent, extent});
    EXPECT_NEAR(worst_ratio(topology, 6), 1, kExact) << topology.text();
    if (extent % 2 == 0) {
      EXPECT_NEAR(worst_ratio(topology, 4), 1, kExact) << topology.text();
    }
  }
  for (int extent = 2; extent <= (is_full() ? 8 : 4); ++extent) {
    const Topology mesh = Topology::torus({extent, extent, extent}, {false, false, false});
    EXPECT_NEAR(time_of(ExchangeOrder::a2at, mesh, 3, Sharing::min) / alltoall_bound(mesh), 1, 0.003) << mesh.text();
  }
}

TEST(ExchangeTimes, OtherBoxesComeNearTheBound) {
  const int most = is_full() ? 8 : 5;
  double sum = 0;
  int shapes = 0;
  for (int x = 2; x <= most; ++x) {
    for (int y = 2; y <= x; ++y) {
      for (int z = 2; z <= y; ++z) {
        const Topology topology = Topology::torus({x, y, z});
        const double ratio = worst_ratio(topology, 4);
        EXPECT_GE(ratio, 1 - kExact) << topology.text();
        EXPECT_LE(ratio, 1.17) << topology.text();
        sum += ratio;
        ++shapes;
      }
    }
  }
  // Small extents are the hardest.
  EXPECT_LE(sum / shapes, is_full() ? 1.01 : 1.03);
}

/// Time over bound on the 32 x 32 torus, for 1 to 8 controllers: first min, then maxmin. Computed once by an
/// independent program.
struct Column {
  ExchangeOrder order;
  double min[8];
  double maxmin[8];
};
constexpr Column kTable[] = {
    {ExchangeOrder::a2and,
     {2.668, 2.661, 2.573, 2.547, 2.515, 2.482, 2.446, 2.491},
     {2.668, 2.661, 2.574, 2.540, 2.512, 2.476, 2.423, 2.363}},
    {ExchangeOrder::a2at_printed,
     {2.668, 1.336, 1.440, 1.246, 1.268, 1.266, 1.258, 1.237},
     {2.668, 1.336, 1.418, 1.241, 1.236, 1.217, 1.215, 1.209}},
    {ExchangeOrder::a2at,
     {2.668, 1.336, 1.414, 1.000, 1.171, 1.106, 1.103, 1.000},
     {2.668, 1.336, 1.399, 1.000, 1.114, 1.064, 1.055, 1.000}},
};

TEST(ExchangeTimes, A32By32TorusAsPublished) {
  const Topology topology = Topology::torus({32, 32, 1}, {true, true, false}, 2);
  const double bound = alltoall_bound(topology);
  EXPECT_EQ(bound, 4096);
  for (const Column& column : kTable) {
    for (int controllers = 1; controllers <= 8; ++controllers) {
      const double min = column.min[controllers - 1];
      const double maxmin = column.maxmin[controllers - 1];
      EXPECT_NEAR(time_of(column.order, topology, controllers, Sharing::min) / bound, min, 0.01 * min)
          << name(column.order) << " " << controllers;
      EXPECT_NEAR(time_of(column.order, topology, controllers, Sharing::maxmin) / bound, maxmin, 0.01 * maxmin)
          << name(column.order) << " " << controllers;
    }
  }
}

/// Whether the network takes ties where the list wants them: with all of them one way the busiest link of a 4 x 4 torus
/// carries 12 messages instead of 8.
TEST(ExchangeTimes, TiesOneWayMakeOneLinkCarryMore) {
  const Topology topology = Topology::torus({4, 4, 1}, {true, true, false}, 2);
  const ExchangeList& list = exchange_list(ExchangeOrder::a2at, topology);
  ExchangeRun run;
  EXPECT_EQ(simulate_exchange(topology, exchange_traffic(topology, list), run).link_messages_most, 8);
  run.ties = false;
  EXPECT_EQ(simulate_exchange(topology, exchange_traffic(topology, list), run).link_messages_most, 12);
}

TEST(ExchangeTimes, SeveralRanksOnANodeTakeTheSquareOfTheirNumber) {
  const Topology one = Topology::torus({5, 5, 1}, {true, true, false}, 2);
  const Topology three = Topology::torus({5, 5, 1}, {true, true, false}, 2, 3);
  EXPECT_DOUBLE_EQ(alltoall_bound(three), 9 * alltoall_bound(one));
  EXPECT_NEAR(time_of(ExchangeOrder::a2at, three, 4, Sharing::min), alltoall_bound(three), kExact);
}

}  // namespace
}  // namespace torii::tests
