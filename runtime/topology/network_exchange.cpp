// SPDX-License-Identifier: Apache-2.0
// Simulates pairwise exchanges on virtual time. A rank has as many controllers as it has transfers in flight; each
// takes the next transfer of the rank's list. Rates change whenever a message starts or ends.
#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include "runtime/base/index.hpp"
#include "runtime/base/status.hpp"
#include "runtime/topology/network_model.hpp"
#include "runtime/topology/routing.hpp"

namespace torii {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Times that differ by no more than this are equal; the sums that computed them differed.
constexpr double kSameTime = 1e-9;

void check(const Topology& topology, const ExchangeTraffic& traffic, const ExchangeRun& run) {
  if (run.controllers < 1) invalid(std::to_string(run.controllers) + " controllers; there must be at least 1");
  if (!(run.skew >= 0) || !(run.skew < kNever))
    invalid("a skew of " + std::to_string(run.skew) + "; it must be at least 0");
  if (!(run.jitter >= 0) || !(run.jitter < kNever)) {
    invalid("a jitter of " + std::to_string(run.jitter) + "; it must be at least 0");
  }
  if (topology.kind() == Topology::Kind::node)
    invalid("a pairwise exchange on a node: it has no links whose sharing could be simulated");
  for (std::size_t d = 0; d < 3; ++d) {
    if (traffic.period[d] < 1 || topology.extents()[d] % traffic.period[d] != 0) {
      invalid("period " + std::to_string(traffic.period[d]) + " of dimension " + std::to_string(d) +
              "; it must divide the extent " + std::to_string(topology.extents()[d]));
    }
  }
}

/// Simulates one period of the ranks. Each link represents all links that are a multiple of the period apart.
class PairwiseExchange {
 public:
  PairwiseExchange(const Topology& topology, const ExchangeTraffic& traffic, const ExchangeRun& run)
      : whole_(topology), traffic_(traffic), run_(run), random_(run.seed) {
    // Ranks that start at different times behave differently even if they send alike.
    const bool is_regular = run.skew == 0 && run.jitter == 0;
    period_ = is_regular ? traffic.period : topology.extents();
    const bool mates_alike = is_regular && traffic.mates_alike;
    places_ = mates_alike ? 1 : topology.per_node();
    copies_ = topology.per_node() / places_;
    nodes_ = period_[0] * period_[1] * period_[2];
    next_.assign(index(nodes_ * places_), 0);
    crossings_.assign(index(link_numbers(nodes_)), 0);
  }

  ExchangeTimes simulate() {
    const int controllers = nodes_ * places_ * run_.controllers;
    LinkSharing sharing(link_numbers(nodes_), controllers, run_.sharing);
    begin(controllers);
    double last = 0;
    for (;;) {
      const double now = *std::min_element(wakes_.begin(), wakes_.end());
      if (now == kNever) return times(last, sharing);
      last = now;
      for (int controller = 0; controller < controllers; ++controller) {
        if (wakes_[index(controller)] <= now + kSameTime) wake(controller, now, sharing);
      }
      for (const int controller : sharing.settle()) {
        const double left = share_left(controller, now);
        rates_[index(controller)] = sharing.rate(controller);
        wakes_[index(controller)] = now + left / rates_[index(controller)];
      }
    }
  }

 private:
  double random() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  void begin(int controllers) {
    wakes_.assign(index(controllers), 0);
    rates_.assign(index(controllers), 0);
    is_sending_.assign(index(controllers), false);
    for (std::size_t rank = 0; run_.skew > 0 && rank < next_.size(); ++rank) {
      const auto first = wakes_.begin() + static_cast<std::ptrdiff_t>(rank) * run_.controllers;
      std::fill(first, first + run_.controllers, run_.skew * random());
    }
  }

  /// The fraction of the controller's message that is not sent yet; 1 if the message has just started.
  double share_left(int controller, double now) const {
    const double rate = rates_[index(controller)];
    return rate == 0 ? 1 : std::max(0.0, wakes_[index(controller)] - now) * rate;
  }

  /// A controller has ended a message or a pause: it pauses, starts its rank's next message, or is done.
  void wake(int controller, double now, LinkSharing& sharing) {
    const int rank = controller / run_.controllers;
    const bool has_sent = is_sending_[index(controller)];
    if (has_sent) sharing.end(controller);
    is_sending_[index(controller)] = false;
    if (next_[index(rank)] == traffic_.transfers) {
      wakes_[index(controller)] = kNever;
      return;
    }
    if (has_sent && run_.jitter > 0) {
      wakes_[index(controller)] = now + run_.jitter * random();
      return;
    }
    find_uses(rank, next_[index(rank)]++);
    rates_[index(controller)] = 0;
    is_sending_[index(controller)] = true;
    sharing.start(controller, uses_);
  }

  /// Writes the links that the message crosses to uses_.
  void find_uses(int rank, std::size_t transfer) {
    const int node = rank / places_;
    Coordinates at = {node % period_[0], node / period_[0] % period_[1], node / (period_[0] * period_[1])};
    Coordinates hops = traffic_.hops(whole_.rank(at) + rank % places_, transfer);
    uses_.clear();
    for (std::size_t d = 0; d < 3; ++d) {
      const int period = period_[d];
      const int extent = whole_.extents()[d];
      const bool is_tie = whole_.wraps(static_cast<int>(d)) && 2 * std::abs(hops[d]) == extent;
      if (is_tie && !run_.ties) hops[d] = std::abs(hops[d]);
      const int direction = hops[d] < 0 ? -1 : 1;
      const int length = std::abs(hops[d]);
      for (int hop = 0; hop < std::min(length, period); ++hop) {
        const int from = at[0] + period_[0] * (at[1] + period_[1] * at[2]);
        const LinkId link = link_id(from, static_cast<int>(d), direction);
        // A path of several periods crosses the same link several times.
        const int times = copies_ * ((length - hop + period - 1) / period);
        uses_.push_back({link, times});
        crossings_[index(link)] += times;
        at[d] = (at[d] + direction + period) % period;
      }
      // Whole periods lead back to the start; only the remainder moves.
      if (length > period) at[d] = (at[d] + direction * (length % period) + period) % period;
    }
  }

  ExchangeTimes times(double last, const LinkSharing& sharing) const {
    ExchangeTimes result;
    result.time = last;
    result.messages = static_cast<std::int64_t>(traffic_.transfers) * whole_.ranks();
    for (LinkId link = 0; link < link_numbers(nodes_); ++link) {
      result.link_messages_most = std::max(result.link_messages_most, crossings_[index(link)]);
      if (sharing.most(link) > 1) result.links_shared += whole_.nodes() / nodes_;
    }
    return result;
  }

  const Topology& whole_;
  const ExchangeTraffic& traffic_;
  const ExchangeRun& run_;
  std::mt19937_64 random_;
  Coordinates period_ = {1, 1, 1};
  int places_ = 1;  ///< simulated ranks per node; each represents `copies_` ranks
  int copies_ = 1;
  int nodes_ = 1;
  std::vector<std::size_t> next_;        ///< by rank: its next transfer
  std::vector<double> wakes_;            ///< by controller: the end of its message or pause
  std::vector<double> rates_;            ///< by controller; 0 until the first settle() of a message
  std::vector<bool> is_sending_;         ///< by controller
  std::vector<std::int64_t> crossings_;  ///< by link: messages
  std::vector<LinkSharing::Use> uses_;
};

}  // namespace

ExchangeTimes simulate_exchange(const Topology& topology, const ExchangeTraffic& traffic, const ExchangeRun& run) {
  check(topology, traffic, run);
  return PairwiseExchange(topology, traffic, run).simulate();
}

double alltoall_bound(const Topology& topology) {
  double bound = 0;
  if (topology.kind() == Topology::Kind::node) return bound;
  const double mates = topology.per_node();
  for (int d = 0; d < 3; ++d) {
    const int extent = topology.extents()[index(d)];
    const double across = static_cast<double>(extent / 2) * ((extent + 1) / 2);
    const double one = across * topology.nodes() / extent * mates * mates;
    bound = std::max(bound, topology.wraps(d) ? one / 2 : one);
  }
  return bound;
}

}  // namespace torii
