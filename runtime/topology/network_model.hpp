// SPDX-License-Identifier: Apache-2.0
// Who shares a directed link, at what rate, and how long a pairwise exchange takes: arithmetic on virtual time, without
// plans, bytes or latencies. The model of the A2AT paper (section 2.1): messages long enough that only bandwidth
// counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/topology/topology.hpp"

namespace torii {

/// min     a flow gets the least, over its links, of 1 / flows there; what it leaves elsewhere is lost (the paper's)
/// maxmin  what one flow cannot use is shared by the others: rates grow together until links are full
enum class Sharing { min, maxmin };

/// "min", "maxmin".
std::string_view name(Sharing sharing) noexcept;

/// The rates of flows over links. Flows and links are numbered by the caller from 0.
class LinkSharing {
 public:
  /// A flow takes `times` its rate on a link: more than 1 where one link stands for several.
  struct Use {
    int link;
    int times;
  };

  /// `bandwidths`, one for each link and above 0, in any unit; none: all are 1.
  LinkSharing(int links, int flows, Sharing sharing, std::span<const double> bandwidths = {});

  /// Starts a flow that has ended or never began. Without uses it is as fast as one likes.
  void start(int flow, std::span<const Use> uses);
  void end(int flow);
  /// Works out the rates after starts and ends. The flows whose rates are no longer what they were at the last call,
  /// started ones among them; valid until the next call.
  std::span<const int> settle();
  /// As of the last settle(), in the unit of bandwidths; infinite without uses.
  double rate(int flow) const noexcept { return flows_[static_cast<std::size_t>(flow)].rate; }
  /// The most flows that a link has had at any settle().
  int most(int link) const noexcept { return links_[static_cast<std::size_t>(link)].most; }

 private:
  /// A flow on a link: which, and where in its list of uses.
  struct Visitor {
    int flow;
    int use;
  };
  struct Link {
    std::vector<Visitor> visitors;
    int load = 0;     ///< flows, each as often as it uses the link
    int settled = 0;  ///< load at the last settle()
    int most = 0;
    bool is_changed = false;
    double bandwidth = 1;
    double left = 0;  ///< while rates are worked out by maxmin: bandwidth and load of flows without a rate yet
    int waiting = 0;
  };
  struct Flow {
    std::vector<Use> uses;
    std::vector<int> places;  ///< of each use, the place in its link's visitors
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

/// What every rank sends in a pairwise exchange.
struct ExchangeTraffic {
  std::size_t entries = 0;
  /// The hops of a message along each dimension, signed (dimension order: x, then y, then z).
  std::function<Coordinates(int rank, std::size_t transfer)> hops;
  /// After a shift by so many nodes along a dimension every rank sends what the one there before it sent: 1 where all
  /// do alike, the extent where none does. A divisor of the extent. One period of ranks is simulated for all.
  Coordinates period = {1, 1, 1};
  /// Whether the ranks of one node all send the same.
  bool mates_alike = true;
};

struct ExchangeRun {
  int controllers = 4;  ///< transfers of each rank in flight
  Sharing sharing = Sharing::min;
  bool ties = true;        ///< false: the network takes every tie along +, whatever the list says
  double skew = 0;         ///< ranks start at times spread evenly over 0 .. skew
  double jitter = 0;       ///< engines rest between messages for times spread evenly over 0 .. jitter
  std::uint64_t seed = 1;  ///< of both
};

/// Times are in units of one message on an idle link.
struct ExchangeTimes {
  double time = 0;  ///< from the first start to the last end
  std::int64_t messages = 0;
  std::int64_t link_messages_most = 0;  ///< over the link that carries most
  int links_shared = 0;                 ///< directed links that two messages or more have used at one time
};

/// Runs a pairwise exchange to its end. Equal on every platform: own arithmetic on std::mt19937_64. Throws
/// Error{invalid_argument} for a run that makes no sense, or a period that does not divide the extent.
ExchangeTimes simulate_exchange(const Topology& topology, const ExchangeTraffic& traffic, const ExchangeRun& run);

/// No alltoall of one message per pair is shorter: the messages across the middle of the worst dimension over the links
/// there (section 2.3 of the paper, for any extents). Half as long where the dimension wraps. 0 where there are no
/// links.
double alltoall_bound(const Topology& topology);

}  // namespace torii
