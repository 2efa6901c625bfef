// SPDX-License-Identifier: Apache-2.0
// How long a partial schedule must still take at least.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "collectives/schedules/schedule_state.hpp"

namespace torii::scheduling {

/// A lower bound by counting first copies.
///
/// A cut is a connected set of relays. It divides the other nodes into components, each on a link of its own. A
/// component without the message needs a first copy over the cut; the others hand copies out, the k-th no earlier than
/// its link can have carried k messages besides what is reserved on it, and no earlier than one message takes at the
/// best rate. A component that has received a copy hands out copies too. The r-th first copy arrives no earlier than
/// the r-th of all these, and after it the component must still serve its inside, for which a bound is known
/// beforehand; the longest such bounds are given to the first arrivals.
///
/// The bound of the inside starts at the first arrival of any copy there. It allows for further copies from outside,
/// among them those that slow senders have under way at the same time: the least rates that fit beside each other are
/// counted, each link being the slowest of one transfer at a time.
class Bound {
 public:
  explicit Bound(const Model& model);

  /// No continuation of `state` is complete before this. May stop looking once it has reached `enough`.
  Ticks of(const State& state, Ticks enough);

 private:
  /// A component: the part of the tree that one link joins to a cut.
  struct Component {
    std::vector<int> ranks;
    std::vector<Ticks> before;  ///< by rank of `ranks`: latencies to the link of the cut
    int out_resource = 0;
    Ticks out_latency = 0;      ///< of that link
    std::int64_t capacity = 0;  ///< of that link, outwards
    std::int64_t rate_out = 0;  ///< the best of any of its ranks up to the cut
    std::int64_t rate_in = 0;
    Ticks least_before = 0;
    Ticks latency_in = 0;  ///< from the cut to its nearest rank
    Ticks inside = 0;      ///< from a first arrival to the end
  };
  using Cut = std::vector<Component>;  ///< those with the longest inside first

  /// Hands out copies as fast as it could.
  struct Source {
    double base = 0;  ///< the k-th copy arrives at base + max(least, (k - spare) * period), but not before `base`
    double least = 0;
    double period = 0;
    int spare = 0;
    int copies = 0;
    int busy = -1;  ///< index into busy_sources_: the link is reserved in part
    double next() const;
  };
  struct BusySource {
    std::vector<std::pair<double, double>> free;  ///< (moment, what is free from there on); the last one for ever
    double base = 0;                              ///< added to when the link has carried a copy
    double least = 0;
    double carried(double messages_bytes) const;  ///< the moment when so much has been carried
    double first_free() const;
  };
  /// The best of several components.
  struct Best {
    std::int64_t capacity = 0;
    std::int64_t rate_out = 0;
    std::int64_t rate_in = 0;
    Ticks way_out = kNever;  ///< latencies from a rank across the link
    Ticks latency_in = kNever;
    void add(const Component& component);
  };

  Cut make_cut(const std::vector<bool>& in_cut, int entry, TreeHop from_outside);
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
  bool by_pairs_ = false;  ///< ranks that forward are in no cut's way: look at single ways too
  std::vector<Source> sources_;
  std::vector<BusySource> busy_sources_;
  std::vector<Ticks> target_insides_;
};

}  // namespace torii::scheduling
