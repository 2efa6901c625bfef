// SPDX-License-Identifier: Apache-2.0
// A model of shared directed links: the rates of flows, and the time of a pairwise exchange. Time is virtual; there are
// no plans, bytes or latencies. It is the model of the A2AT paper (section 2.1): messages are so long that only
// bandwidth matters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/topology/topology.hpp"

namespace torii {

enum class Sharing {
  min,    ///< a flow's rate is the minimum of 1 / flows over its links; what it leaves unused is lost (the paper)
  maxmin  ///< max-min fairness: the other flows share the bandwidth that a flow cannot use
};

/// "min", "maxmin".
std::string_view name(Sharing sharing) noexcept;

/// The rates of flows over links. The caller numbers flows and links from 0.
class LinkSharing {
 public:
  /// A flow uses `times` its rate on a link: more than once if one link represents several.
  struct Use {
    int link;
    int times;
  };

  /// `bandwidths` has one value above 0 for each link, in any unit; if empty, all bandwidths are 1.
  LinkSharing(int links, int flows, Sharing sharing, std::span<const double> bandwidths = {});

  /// Starts a flow that has ended or never began. A flow without uses has an infinite rate.
  void start(int flow, std::span<const Use> uses);
  void end(int flow);
  /// Computes the rates after starts and ends. Returns the flows whose rates have changed since the last call,
  /// including those that started; valid until the next call.
  std::span<const int> settle();
  /// The flow's rate after the last settle(), in the unit of bandwidths.
  double rate(int flow) const noexcept { return flows_[static_cast<std::size_t>(flow)].rate; }
  /// The most flows that a link has had at any settle().
  int most(int link) const noexcept { return links_[static_cast<std::size_t>(link)].most; }

 private:
  /// A flow on a link.
  struct Visitor {
    int flow;
    int use;  ///< index into the flow's uses
  };
  struct Link {
    std::vector<Visitor> visitors;
    int load = 0;     ///< number of uses by flows
    int settled = 0;  ///< load at the last settle()
    int most = 0;
    bool is_changed = false;
    double bandwidth = 1;
    double left = 0;  ///< in settle_maxmin(): bandwidth that is left for flows without a rate
    int waiting = 0;  ///< in settle_maxmin(): load of flows without a rate
  };
  struct Flow {
    std::vector<Use> uses;
    std::vector<int> places;  ///< by use: index into its link's visitors
    double rate = 0;
    bool is_active = false;
    bool is_marked = false;
    double old_rate = 0;
  };

  void note(int link);
  void mark(int flow);
  void settle_min();
  void settle_maxmin();

  Sharing sharing_;
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<int> changed_links_;
  std::vector<int> marked_;
  std::vector<int> changed_flows_;
};

/// The messages that every rank sends in a pairwise exchange.
struct ExchangeTraffic {
  std::size_t transfers = 0;  ///< of each rank
  /// The signed hops of a message along each dimension (in the order x, y, z).
  std::function<Coordinates(int rank, std::size_t transfer)> hops;
  /// Ranks that are this many nodes apart along a dimension send alike: 1 if all do, the extent if none do. It divides
  /// the extent. The simulation covers one period of ranks.
  Coordinates period = {1, 1, 1};
  /// Whether all ranks of a node send alike.
  bool mates_alike = true;
};

struct ExchangeRun {
  int controllers = 4;  ///< transfers in flight of each rank
  Sharing sharing = Sharing::min;
  bool ties = true;        ///< false: the network sends every tie along +, whatever the list says
  double skew = 0;         ///< ranks start at random times in 0 .. skew
  double jitter = 0;       ///< a controller pauses after each message for a random time in 0 .. jitter
  std::uint64_t seed = 1;  ///< of skew and jitter
};

/// Times are in units of one message on an idle link.
struct ExchangeTimes {
  double time = 0;  ///< from the first start to the last end
  std::int64_t messages = 0;
  std::int64_t link_messages_most = 0;  ///< messages over the link that carries most
  int links_shared = 0;                 ///< directed links that several messages have used at the same time
};

/// Simulates a pairwise exchange. The result is equal on every platform. Throws Error{invalid_argument} for a negative
/// or infinite value, a topology without links, or a period that does not divide the extent.
ExchangeTimes simulate_exchange(const Topology& topology, const ExchangeTraffic& traffic, const ExchangeRun& run);

/// A lower bound for an alltoall of one message per pair: the messages across the middle of the worst dimension divided
/// by the links there. The links are twice as many if the dimension wraps (section 2.3 of the paper, for any extents).
/// 0 if there are no links.
double alltoall_bound(const Topology& topology);

}  // namespace torii
