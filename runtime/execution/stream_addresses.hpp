// SPDX-License-Identifier: Apache-2.0
// Where the streams of a plan that is being installed have their slots, credits and lines of offers, at both ends.
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
  /// The slots of a receiver's in-stream, mapped; nullptr if they cannot be.
  std::byte* slots(int receiver, int in_index) const;
  /// One of the lines for buffer offers in the arena of `reader`, between the plan's rank and `peer`.
  OfferLine offer_line(int peer, int reader, int line) const;
  /// Line number `line` of kPairOfferLines on the channel's standing rings, likewise.
  OfferLine standing_offer_line(int peer, int reader, std::size_t line = 0) const;
  /// One end of a stream; the plan's rank is the sender or the receiver.
  RingPlace ring_place(const Stream& stream, int receiver, int in_index, int sender, int out_index) const;
  /// The same for a stream on a standing ring; these of a stream to or from another node, whose receiver has taken
  /// entries for it.
  RingPlace standing_place(const Stream& stream) const;
  RingPlace standing_place(const Stream& stream, const SendEnd& end) const;
  RingPlace standing_place(const Stream& stream, const ReceiveEnd& end) const;
  ChannelRings* rings() const noexcept { return placement_.rings; }

 private:
  std::uint64_t staging(int rank) const { return placement_.staging_offsets[static_cast<std::size_t>(rank)]; }
  int node(int rank) const { return nodes_[static_cast<std::size_t>(rank)]; }
  std::uint64_t slots_at(int receiver, int index) const {
    return staging(receiver) + static_cast<std::uint64_t>(index) * installed_.shape.stream_bytes;
  }
  std::uint64_t credits_at(int sender, int index) const {
    return staging(sender) + installed_.shape.credits_offset +
           static_cast<std::uint64_t>(index) * installed_.shape.credit_bytes;
  }
  std::byte* own(std::uint64_t offset) const {
    return placement_.transport->mapped(context_rank(installed_.plan.rank), offset);
  }

  const InstalledPlan& installed_;
  const Placement& placement_;
  const Nodes& nodes_;
};

/// Gives the streams of a pairwise exchange their addresses, and lists them in the order of sending and of taking.
/// Needs no peer's plan: which of a peer's streams belongs to this rank follows from their ranks.
void install_exchange(InstalledPlan& installed, const StreamAddresses& addresses);

}  // namespace torii
