// SPDX-License-Identifier: Apache-2.0
// Messages of sends and receives within a node, on standing rings of their own: one from each rank to each other one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/point_to_point/pair_area.hpp"
#include "runtime/rings/channel_rings.hpp"

namespace torii {

/// A message is in one line of the receiver's memory: signal, heading, and a payload of up to 40 bytes. A longer
/// payload stays in a place of the sender's memory, where the receiver reads it. Places to each peer are used in turn,
/// so both ends know which one is next, and no place is told. Each peer has places of its own: if all shared them, two
/// senders could hold what the other one needs.
///
/// The receiver tells the sender how many messages it has taken, and so gives back lines and places. The order is that
/// of all standing rings (runtime/rings/ring_ends.hpp): payload and heading are stored before the signal, which is
/// released, and read after it is acquired; the count is released after these reads, and the sender acquires it before
/// it stores there again. A sender that waits is always told: its receiver takes all that has come whenever it makes a
/// call, and then tells at the latest when a quarter of the lines or of the places is given back, so some are known to
/// be free.
class RingStreams final : public PairStreams {
 public:
  /// The area of each member is zeroed, but for its places.
  RingStreams(Transport& transport, const PairArea& area, const RingMembers& members, int peer) noexcept;

  bool may_send(const RunningCall& call, std::size_t bytes) noexcept override;
  void send(RunningCall& call, const Heading& heading, const void* payload, std::size_t bytes) noexcept override;
  Arrived arrived(const RunningCall& call) const noexcept override;
  void take(RunningCall& call, const Arrived& message) noexcept override;

 private:
  static std::uint64_t quarter(int of) noexcept { return of < 4 ? 1 : static_cast<std::uint64_t>(of) / 4; }
  std::size_t entry_offset(std::uint64_t message) const noexcept {
    return (message & (static_cast<std::uint64_t>(sizes_.entries) - 1)) * kLineBytes;
  }
  /// The place of a payload; they are numbered too.
  std::size_t place_of(std::uint64_t payload) const noexcept {
    return payload & (static_cast<std::uint64_t>(sizes_.places) - 1);
  }

  const PairSizes sizes_;
  SendEnd to_;
  ReceiveEnd from_;
  std::byte* own_places_;          ///< of payloads to the peer
  const std::byte* their_places_;  ///< of payloads to this rank
  std::uint64_t sent_ = 0;
  std::uint64_t payloads_sent_ = 0;
  std::uint64_t payloads_taken_ = 0;
  std::uint64_t payloads_untold_ = 0;  ///< taken since the sender was told last
  /// By place: it is free when all messages below that one have been taken.
  std::array<std::uint64_t, kPairPayloads> free_at_{};
};

}  // namespace torii
