// SPDX-License-Identifier: Apache-2.0
// Where the streams of a plan that is being installed have their entries, credits and lines of offers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/execution/installed_plan.hpp"

namespace torii {

/// As the transport tells them.
Nodes nodes_of(const Placement& placement);

/// Ranks are those of the team. Keeps references to what it is made of; the plan and its shape are set.
class StreamAddresses {
 public:
  StreamAddresses(const InstalledPlan& installed, const Placement& placement, const Nodes& nodes)
      : installed_(installed), placement_(placement), nodes_(nodes) {}

  bool shares_node(int a, int b) const { return node(a) == node(b); }
  int context_rank(int rank) const { return placement_.context_ranks[static_cast<std::size_t>(rank)]; }
  Transport& transport() const { return *placement_.transport; }
  /// One of the kPairOfferLines lines for buffer offers in the arena of `reader`, between the plan's rank and `peer`.
  OfferLine offer_line(int peer, int reader, std::size_t line = 0) const;
  /// The end of a stream. To another node the sender's is whole when the receiver has told where its entries are
  /// (take_grants()); from there the receiver has taken them.
  RingPlace place_of(const Stream& stream, const SendEnd& end) const;
  RingPlace place_of(const Stream& stream, const ReceiveEnd& end) const;
  ChannelRings& rings() const noexcept { return *placement_.rings; }

 private:
  RingPlace common_place(const Stream& stream) const;
  int node(int rank) const { return nodes_[static_cast<std::size_t>(rank)]; }
  std::byte* own(std::uint64_t offset) const {
    return placement_.transport->mapped(context_rank(installed_.plan.rank), offset);
  }

  const InstalledPlan& installed_;
  const Placement& placement_;
  const Nodes& nodes_;
};

/// Gives the streams of a pairwise exchange their addresses, and lists them in the order of sending and of taking.
void install_exchange(InstalledPlan& installed, const StreamAddresses& addresses);

}  // namespace torii
