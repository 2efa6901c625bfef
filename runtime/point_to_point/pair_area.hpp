// SPDX-License-Identifier: Apache-2.0
// Where the messages of a team's sends and receives are in its members' memory.
#pragma once

#include <cstddef>

#include "runtime/point_to_point/messages.hpp"

namespace torii {

/// How much room they have. Equal on all members.
struct PairSizes {
  int ranks = 1;                         ///< on one node; of a team on several nodes, the most that any of them has
  int entries = 1;                       ///< of a ring between two of them: lines; a power of two
  int places = 1;                        ///< of payloads from a rank to another one; a power of two, <= kPairPayloads
  std::size_t place_bytes = kLineBytes;  ///< whole lines
  int team_ranks = 0;                    ///< of a team on several nodes; 0: it is on one node
};
/// Those of a team of so many ranks on one node. A part of it may use them too: it needs no more memory.
PairSizes pair_sizes(int ranks) noexcept;
/// The same for a team of `team_ranks` on several nodes, of which none has more than `ranks`.
PairSizes distant_pair_sizes(int ranks, int team_ranks) noexcept;

/// From an entry of messages between nodes to the next one: the signal's line, then heading and payload.
constexpr std::size_t distant_pair_entry_bytes(const PairSizes& sizes) noexcept {
  return kLineBytes + sizes.place_bytes;
}

/// The memory of a member. For the members of its node, in this order: the lines of messages to it, a line that each
/// peer tells it something in, and the places of its own payloads. So all that has to be zero before its first use
/// comes first. Behind that for the other nodes: credits, entries of messages to it, and those of its own messages, as
/// many as there are places.
class PairArea {
 public:
  explicit PairArea(const PairSizes& sizes) noexcept : sizes_(sizes) {}

  const PairSizes& sizes() const noexcept { return sizes_; }
  /// All that has to be zero in a team on one node.
  std::size_t words_bytes() const noexcept { return mates() * (entries_bytes() + kLineBytes); }
  std::size_t total_bytes() const noexcept;

  // Offsets from the beginning of the area of `member`. Both are places on a node.
  /// The first entry of the ring from `peer`.
  std::size_t entries(int member, int peer) const noexcept { return index(member, peer) * entries_bytes(); }
  /// The line in which `peer` tells the count of the ring to it, and PairWords behind that.
  std::size_t told(int member, int peer) const noexcept {
    return mates() * entries_bytes() + index(member, peer) * kLineBytes;
  }
  /// The first place of the payloads to `peer`.
  std::size_t places(int member, int peer) const noexcept {
    return words_bytes() + index(member, peer) * places_bytes();
  }

  // The same between nodes. Both are ranks of the team.
  /// The credits of messages to `peer`.
  std::size_t distant_credits(int member, int peer) const noexcept {
    return distant() + index(member, peer) * credits_bytes();
  }
  /// The first entry of messages from `peer`.
  std::size_t distant_entries(int member, int peer) const noexcept {
    return distant() + peers() * credits_bytes() + index(member, peer) * distant_bytes();
  }
  /// The first entry of messages that leave for `peer`.
  std::size_t distant_leaving(int member, int peer) const noexcept {
    return distant_entries(member, peer) + peers() * distant_bytes();
  }

 private:
  std::size_t mates() const noexcept { return static_cast<std::size_t>(sizes_.ranks - 1); }
  std::size_t peers() const noexcept {
    return sizes_.team_ranks == 0 ? 0 : static_cast<std::size_t>(sizes_.team_ranks - 1);
  }
  std::size_t entries_bytes() const noexcept { return static_cast<std::size_t>(sizes_.entries) * kLineBytes; }
  std::size_t places_bytes() const noexcept { return static_cast<std::size_t>(sizes_.places) * sizes_.place_bytes; }
  std::size_t credits_bytes() const noexcept {
    return round_up(static_cast<std::size_t>(sizes_.places) * sizeof(std::uint64_t), kLineBytes);
  }
  std::size_t distant_bytes() const noexcept {
    return static_cast<std::size_t>(sizes_.places) * distant_pair_entry_bytes(sizes_);
  }
  std::size_t distant() const noexcept { return words_bytes() + mates() * places_bytes(); }
  static std::size_t index(int member, int peer) noexcept {
    return static_cast<std::size_t>(peer - (peer > member ? 1 : 0));
  }

  PairSizes sizes_;
};

}  // namespace torii
