// SPDX-License-Identifier: Apache-2.0
// Where the standing rings of a team are in its members' memory. Places are formulas, equal on all members, so nobody
// has to be asked for one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/fabric/words.hpp"

namespace torii {

/// A ring has at most so many entries: one bit each in the word of messages that were taken ahead of the count.
inline constexpr int kRingEntriesMax = 64;

/// A ring has entries of three kinds. A call uses one of them: lines, or if all its messages are short, cells or wide
/// cells.
enum class EntryKind : std::uint8_t { line, cell, wide_cell };
inline constexpr std::size_t kEntryKinds = 3;
constexpr std::size_t entry_bytes(EntryKind kind) noexcept {
  return kind == EntryKind::line ? kLineBytes : kind == EntryKind::cell ? kCellBytes : kWideCellBytes;
}

/// The lines of a rank's buffer offers to another rank: one for plans of flows, behind it those of exchanges
/// (line_of_offer()). Both kinds of plans may take turns: an offer of one is never overwritten by the other's.
inline constexpr std::size_t kPairOfferLines = 3;
inline constexpr std::size_t kExchangeOffersBegin = 1;

/// How many rings a team has, and how large they are. Equal on all members.
struct RingSizes {
  int ranks = 1;                 ///< of the team
  int channels = 1;              ///< with rings
  int entries = 1;               ///< of a ring, of each kind
  int rings = 1;                 ///< from a rank to another one on a channel
  std::size_t outbox_bytes = 0;  ///< of a channel's outbox, whole pages
};
/// Larger teams have none yet: their rings would have few entries, or take more memory than a team of that size has
/// now.
inline constexpr int kRingRanksMost = 256;
/// Those of a team of so many ranks on one node, at most kRingRanksMost. Equal on all members.
RingSizes ring_sizes(int ranks, int channels) noexcept;
/// The area of a team of up to so many ranks takes at most so much in a member, however many channels there are.
std::size_t rings_bytes_most(int ranks) noexcept;

/// The memory of a member for standing rings: entries of the rings to it, counts of the rings from it, and lines of
/// buffer offers to it. What short calls touch comes first and is dense. Outboxes are elsewhere: signals tell where.
class RingArea {
 public:
  RingArea() = default;
  explicit RingArea(const RingSizes& sizes) noexcept;

  const RingSizes& sizes() const noexcept { return sizes_; }
  std::size_t total_bytes() const noexcept { return total_bytes_; }
  /// The bytes at the beginning of the area that hold all words of the rings below `rings` of each pair. Before its
  /// first use a word is zero.
  std::size_t words_bytes(int rings) const noexcept;

  // Offsets from the beginning of the member's area. Ranks are those of the team.
  /// The first entry of a ring to this member.
  std::size_t entries(EntryKind kind, int channel, int ring, int sender) const noexcept;
  /// The count of a ring from this member.
  std::size_t count(int channel, int ring, int receiver) const noexcept {
    return counts_ + pair(channel, receiver) * counts_bytes_ + static_cast<std::size_t>(ring) * sizeof(std::uint64_t);
  }
  /// The first of the kPairOfferLines lines of `peer`'s buffer offers to this member.
  std::size_t offers(int channel, int peer) const noexcept {
    return offers_ + pair(channel, peer) * kPairOfferLines * kLineBytes;
  }

 private:
  std::size_t pair(int channel, int peer) const noexcept {
    return static_cast<std::size_t>(channel) * static_cast<std::size_t>(sizes_.ranks) + static_cast<std::size_t>(peer);
  }

  RingSizes sizes_;
  std::size_t kind_bytes_[kEntryKinds] = {};  ///< of one ring, whole lines
  std::size_t firsts_[kEntryKinds] = {};      ///< where the entries of all rings 0 are
  std::size_t counts_bytes_ = 0;              ///< of an ordered pair
  std::size_t counts_ = 0;
  std::size_t offers_ = 0;
  std::size_t others_ = 0;  ///< the entries of the rings from 1 on, ring by ring
  std::size_t total_bytes_ = 0;
};

}  // namespace torii
