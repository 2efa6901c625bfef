// SPDX-License-Identifier: Apache-2.0
// A model of rounds, bytes and links. It decides whether blocks of an alltoall travel together in a few rounds, and by
// which radix, or each by itself.
#pragma once

#include <cstddef>

#include "runtime/topology/topology.hpp"

namespace torii {

/// The cost of floyd on a topology, independent of the length of blocks.
struct FloydCost {
  int rounds = 0;
  double latency_s = 0;    ///< of the longest way, which every round waits for; between sites that of the long links
  int messages = 0;        ///< that every rank sends
  long long blocks = 0;    ///< that every rank sends
  double link_blocks = 0;  ///< over the busiest link, or where there are no links the port, of each round; together
};

/// By the routes of the topology (runtime/topology/routing.hpp); of more than 16384 ranks by their ports alone.
FloydCost floyd_cost(const Topology& topology, int radix);

/// Seconds of an alltoall of blocks of so many bytes. The first function is for floyd with that cost. The second is for
/// a message per pair of ranks, with links as busy as alltoall_bound() says, which no order of messages beats.
double floyd_seconds(const FloydCost& cost, std::size_t block_bytes);
double message_per_pair_seconds(const Topology& topology, std::size_t block_bytes);

/// The radix that the model finds quickest, from 2 to 16.
int floyd_radix(const Topology& topology, std::size_t block_bytes);

}  // namespace torii
