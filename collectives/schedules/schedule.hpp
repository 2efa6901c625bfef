// SPDX-License-Identifier: Apache-2.0
// The broadcast schedule of least time on a tree of links: the transfers of the whole message between ranks, with
// times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/topology/topology.hpp"

namespace torii {

/// The whole message goes from a rank that has it to one that has not.
struct Transfer {
  int sender = 0;
  int receiver = 0;
  double start_s = 0;  ///< when the sender begins
  double end_s = 0;    ///< when the receiver has everything
  /// Transfers, by their place in the schedule, that must end before this one fits on a link. Their receivers have to
  /// tell this transfer's sender that they have ended.
  std::vector<int> after = {};
};

/// When to stop searching. Steps are schedules begun, the same on every machine; seconds are not.
struct ScheduleBudget {
  std::int64_t steps = 20'000;
  double seconds = 0;  ///< 0: no limit
};

struct Schedule {
  std::vector<Transfer> transfers;  ///< in the order of their starts
  double time_s = 0;                ///< when the last receiver has everything
  double bound_s = 0;               ///< no schedule takes less; time_s when proven
  bool proven = false;              ///< no schedule takes less than time_s (1e-9 of it aside)
  std::int64_t nodes = 0;           ///< partial schedules looked at
  double gap() const { return time_s > 0 ? (time_s - bound_s) / time_s : 0; }
};

/// Searches for the schedule of least time for a message of `bytes` bytes from rank `root`, by branch and bound.
///
/// The network: a transfer runs at the least bandwidth b on its way and occupies b of every directed link of it (of the
/// link as a whole where that is half duplex) for bytes / b, from its start plus the latencies before that link.
/// Several transfers may share a link while they fit; otherwise a transfer starts when it fits, given those that were
/// placed before it. A rank that has received everything may send, to several ranks at once.
///
/// Equal arguments give equal schedules unless the budget is one of time.
/// Source: Y. Hourai, A. Nishida, Y. Oyanagi, Optimal Broadcast Scheduling on Tree-structured Networks (in Japanese),
/// IPSJ Transactions on Advanced Computing Systems 45, 2004, section 5; the lower bound there is not valid, and is
/// replaced (docs/algorithms/scheduled.md, "The search").
Schedule find_schedule(const TreeTopology& tree, int root, std::size_t bytes, const ScheduleBudget& budget = {});

/// The schedule of a broadcast from `root` of `bytes` bytes on a tree of links, or on one node, whose ranks are taken
/// for a star. `backwards`: on the tree with the directions of all links exchanged, to be run backwards as a reduce.
/// The last few are kept, because every rank works out its peers' plans too.
std::shared_ptr<const Schedule> kept_schedule(const Topology& topology, int root, std::size_t bytes, bool backwards);

/// The time that the model gives to a chain in depth-first order from `root`, in segments.
double chain_time_s(const TreeTopology& tree, int root, std::size_t bytes, std::size_t segment_bytes);

}  // namespace torii
