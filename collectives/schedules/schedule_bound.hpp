// SPDX-License-Identifier: Apache-2.0
// A lower bound on the completion time of a partial schedule.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "collectives/schedules/schedule_state.hpp"

namespace torii::scheduling {

/// A lower bound by counting first copies.
///
/// A cut is a connected set of relays. Without it, the tree falls into components; one link joins each component to the
/// cut. A component whose ranks lack the message needs a first copy across the cut. A component that has the message
/// sends copies. Its k-th copy cannot arrive before its link can have carried k messages beside the reserved transfers,
/// nor before one message at the best rate. A component that has received a copy sends copies too. So the r-th
/// component served receives its first copy no earlier than the r-th earliest of all these copies. After that copy the
/// component must still distribute the message inside; a bound of that time is computed beforehand. The components with
/// the longest inside times are assumed to be served first.
///
/// The inside time starts when any first copy arrives in the component. Further copies may come from outside, several
/// at once from slow senders. The bound counts as many as the least possible rates allow, because each link can be the
/// bottleneck of only one transfer at a time.
class Bound {
 public:
  explicit Bound(const Model& model);

  /// No continuation of `state` completes before this time. The search for a better bound may stop at `enough`.
  Ticks of(const State& state, Ticks enough);

 private:
  /// The part of the tree that one link (the exit link) joins to a cut.
  struct Component {
    std::vector<int> ranks;
    std::vector<Ticks> before;  ///< by index in `ranks`: latencies from the rank to the exit link
    int out_resource = 0;       ///< the exit link, outwards
    Ticks out_latency = 0;      ///< of the exit link
    std::int64_t capacity = 0;  ///< of the exit link, outwards
    std::int64_t rate_out = 0;  ///< the best rate from a rank of the component to the cut
    std::int64_t rate_in = 0;   ///< the best rate from the cut to a rank of the component
    Ticks least_before = 0;     ///< the least of `before`
    Ticks latency_in = 0;       ///< from the cut to the nearest rank of the component
    Ticks inside = 0;           ///< least time from the first arrival until all ranks of the component have the message
  };
  using Cut = std::vector<Component>;  ///< in decreasing order of `inside`

  /// A sender of copies that sends as fast as the bound allows.
  struct Source {
    double base = 0;  ///< the k-th copy arrives at base + max(least, (k - spare) * period), but not before `base`
    double least = 0;
    double period = 0;
    int spare = 0;
    int copies = 0;  ///< sent so far
    int busy = -1;   ///< index into busy_sources_ if transfers are reserved on the exit link, otherwise -1
    double next() const;
  };
  /// A source on whose exit link transfers are reserved.
  struct BusySource {
    std::vector<std::pair<double, double>> free;  ///< (time, free bandwidth from then on)
    double base = 0;                              ///< added to the time at which the link has carried a copy
    double least = 0;
    double carried(double amount) const;  ///< the time by which the link can have carried `amount`
    double first_free() const;
  };
  /// The best value of each property among several components.
  struct Best {
    std::int64_t capacity = 0;
    std::int64_t rate_out = 0;
    std::int64_t rate_in = 0;
    Ticks way_out = kNever;  ///< latencies from a rank across the exit link
    Ticks latency_in = kNever;
    void add(const Component& component);
  };

  Cut make_cut(const std::vector<bool>& in_cut, int first, TreeHop from_outside);
  void add_cut(const std::vector<bool>& in_cut);
  Component make_component(TreeHop into);
  Ticks inside(TreeHop into, const std::vector<int>& ranks);
  Ticks inside_by_pairs(std::span<const int> ranks, const Source& outside) const;
  Ticks inside_by_cut(const Cut& cut, const Source& outside);
  Source from_outside(TreeHop into, Ticks spread);
  std::vector<std::int64_t> least_rates(TreeHop hop, bool upstream);
  std::vector<int> levels() const;
  std::vector<std::vector<bool>> connected(const std::vector<bool>& relays) const;

  Ticks of_cut(const Cut& cut, const State& state, Ticks enough);
  Source source_of(const Component& component, const Best& targets, const State& state);
  Ticks arrivals(std::span<const Ticks> insides, const Best& best, double floor, double enough);

  const Model* model_;
  std::vector<int> levels_;
  std::vector<Cut> cuts_;
  std::map<std::pair<int, int>, Ticks> insides_;
  bool by_pairs_ = false;  ///< also bound by single paths: no cut contains a rank that forwards
  std::vector<Source> sources_;
  std::vector<BusySource> busy_sources_;
  std::vector<Ticks> target_insides_;
};

}  // namespace torii::scheduling
