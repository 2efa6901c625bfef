// SPDX-License-Identifier: Apache-2.0
// The standing rings of a simulated team. It may have so many ranks that a rank has memory for the streams of its plan
// alone, and not for rings with all others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/execution/installed_plan.hpp"
#include "runtime/execution/lane_watch.hpp"
#include "runtime/rings/channel_rings.hpp"
#include "tools/simulation/run.hpp"

namespace torii::simulated {

/// Each rank is a node of its own. Its memory has the entries of its in-streams, one stream after the other, then the
/// credits of its out-streams, and with data its outbox. Without data an entry is the word of its signal, and payloads
/// have addresses at which nobody looks. Rings have as many entries as the plan has slots, rounded up to a power of
/// two, so that these can be chosen.
class RingPlaces {
 public:
  /// For calls of that shape. The call must outlive this. Throws Error{unsupported} if rings cannot have so many
  /// entries.
  RingPlaces(const Call& call, const CallShape& shape);

  const RingArea& area() const noexcept { return area_; }
  std::size_t arena_bytes() const noexcept { return arena_bytes_; }
  const StreamWords& words() const noexcept { return words_; }

  /// Makes the ends of the rank's rings. Then its plan can be installed on them.
  void add_ends(int rank, Transport& transport, ChannelRings& rings) const;
  /// After its installation.
  void complete(InstalledPlan& plan) const;

 private:
  std::uint64_t entries_offset(int in_stream) const noexcept;
  std::uint64_t credits_offset(int out_stream) const noexcept;
  void add_out(ChannelRings& rings, Transport& transport, int peer, int ring, int out_stream, int in_stream) const;
  void add_in(ChannelRings& rings, int peer, int ring, int in_stream, int out_stream) const;
  void add_flows(const Plan& plan, Transport& transport, ChannelRings& rings) const;
  void add_exchange(const Plan& plan, Transport& transport, ChannelRings& rings) const;

  const Call& call_;
  RingArea area_;
  std::size_t entry_bytes_ = 0;
  StreamWords words_;
  std::uint64_t outbox_offset_ = 0;
  std::size_t arena_bytes_ = 0;
};

}  // namespace torii::simulated
