// SPDX-License-Identifier: Apache-2.0
// Messages of sends and receives between nodes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/point_to_point/pair_area.hpp"
#include "runtime/rings/channel_rings.hpp"

namespace torii {

/// A message is put into an entry of the receiver's memory: the line of the signal with heading and payload, if they
/// fit, and otherwise that line and both behind it. It leaves from an entry of the sender's memory that is laid out
/// likewise. Message n uses entry n modulo the number of entries at both ends. The receiver gives an entry back by a
/// credit of its own, since words may overtake each other on their way: a word for each entry, n + 1 when message n
/// has been taken. Credit and signal are released when they are put and acquired when they are read (memory order:
/// runtime/fabric/words.hpp).
class DistantStreams final : public PairStreams {
 public:
  /// The area of each member is zeroed, but for what leaves from there.
  DistantStreams(Transport& transport, const PairArea& area, const RingMembers& members, int peer) noexcept;

  bool may_send(const RunningCall& call, std::size_t bytes) noexcept override;
  void send(RunningCall& call, const Heading& heading, const void* payload, std::size_t bytes) noexcept override;
  Arrived arrived(const RunningCall& call) const noexcept override;
  void take(RunningCall& call, const Arrived& message) noexcept override;

 private:
  std::size_t place_of(std::uint64_t message) const noexcept {
    return static_cast<std::size_t>(message % static_cast<std::uint64_t>(sizes_.places));
  }
  std::size_t entry_offset(std::uint64_t message) const noexcept {
    return place_of(message) * distant_pair_entry_bytes(sizes_);
  }
  void put(RunningCall& call, Put put) const noexcept;

  const PairSizes sizes_;
  // In the own memory:
  std::byte* leaving_;         ///< entries of messages to the peer
  const std::byte* received_;  ///< entries of messages from it
  const std::byte* credits_;   ///< for messages to it
  // Offsets in the peer's memory:
  std::uint64_t entries_offset_;
  std::uint64_t credits_offset_;
  std::uint64_t sent_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace torii
