// SPDX-License-Identifier: Apache-2.0
// Searches for the fastest broadcast schedule on a tree of links. A schedule is a list of transfers with their times;
// each transfer carries the whole message from one rank to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/topology/topology.hpp"

namespace torii {

/// One rank sends the whole message to another.
struct Transfer {
  int sender = 0;
  int receiver = 0;
  double start_s = 0;  ///< when the sender begins
  double end_s = 0;    ///< when the receiver has everything
  /// Indices of the transfers that must end before this one fits on a link. Their receivers tell this transfer's sender
  /// when they have ended.
  std::vector<int> after = {};
};

/// When to stop the search. A step is one partial schedule examined. A budget of steps gives the same schedule on every
/// machine; a budget of seconds does not.
struct ScheduleBudget {
  std::int64_t steps = 20'000;
  double seconds = 0;  ///< 0: no limit
};

struct Schedule {
  std::vector<Transfer> transfers;  ///< in the order of their starts
  double time_s = 0;                ///< when the last receiver has everything
  double bound_s = 0;               ///< lower bound of any schedule's time; time_s when proven
  bool proven = false;              ///< time_s is the least possible, up to a relative error of 1e-9
  std::int64_t nodes = 0;           ///< partial schedules examined
  double gap() const { return time_s > 0 ? (time_s - bound_s) / time_s : 0; }
};

/// Searches for the schedule of least time for a message of `bytes` bytes from rank `root`, by branch and bound.
///
/// The network model: a transfer runs at the least bandwidth b on its path. It occupies b of every directed link on the
/// path for bytes / b seconds; a half-duplex link has one bandwidth for both directions. On each link the occupation
/// begins at the transfer's start plus the latencies of the links before. Transfers may share a link while their rates
/// fit; otherwise a transfer starts as soon as it fits beside those placed before. A rank may send once it has received
/// the whole message, to several ranks at once.
///
/// Equal arguments give equal schedules unless the budget limits seconds.
/// Source: Y. Hourai, A. Nishida, Y. Oyanagi, Optimal Broadcast Scheduling on Tree-structured Networks (in Japanese),
/// IPSJ Transactions on Advanced Computing Systems 45, 2004, section 5. The lower bound there is not valid, and is
/// replaced (docs/algorithms/scheduled.md, "The search").
Schedule find_schedule(const TreeTopology& tree, int root, std::size_t bytes, const ScheduleBudget& budget = {});

/// The schedule of a broadcast of `bytes` bytes from `root` on a tree of links. The ranks of a single node count as a
/// star. With `backwards`, the directions of all links are swapped: the schedule run backwards is a reduce. The last
/// few schedules are cached, because every rank also computes its peers' plans.
std::shared_ptr<const Schedule> kept_schedule(const Topology& topology, int root, std::size_t bytes, bool backwards);

/// The modelled time of a pipelined chain through the ranks in depth-first order from `root`.
double chain_time_s(const TreeTopology& tree, int root, std::size_t bytes, std::size_t segment_bytes);

}  // namespace torii
