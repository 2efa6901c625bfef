// SPDX-License-Identifier: Apache-2.0
// Where the standing rings of a team are in its members' memory. Places are formulas, equal on all members, so nobody
// has to be asked for one.
#pragma once

#include <array>
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

/// Between nodes an entry is a line and the payload behind it: nothing in the first size, where payloads are in lines,
/// then up to so many bytes times a power of four. Each size has memory of its own, which the receiver takes when a
/// plan first needs it. Calls of many lengths share it, and touch no more of an entry than their messages have.
inline constexpr std::size_t kDistantBytesLeast = 2048;
inline constexpr int kDistantSizes = 7;
/// The size of entries for such payloads; kDistantSizes if they are too long.
int distant_size(std::size_t payload_bytes) noexcept;
/// The longest payload of such an entry.
constexpr std::size_t distant_payload_bytes(int size) noexcept {
  return size == 0 ? kInlineBytes : kDistantBytesLeast << 2 * (size - 1);
}
/// From an entry of that size to the next one.
constexpr std::size_t distant_entry_bytes(int size) noexcept {
  return kLineBytes + (size == 0 ? 0 : distant_payload_bytes(size));
}

/// The plans of a team on several nodes use rings of four kinds, each with as many entries as suit it: pairwise
/// exchanges, which have many peers, and flows of short, of longer and of long messages. On one node all plans share
/// the rings.
enum class RingKind : std::uint8_t { exchange, short_flow, longer_flow, long_flow };
inline constexpr std::size_t kRingKinds = 4;
inline constexpr int kFlowKinds = 3;
struct KindSizes {
  int entries = 1;
  std::uint32_t credit_group = 1;  ///< so many messages to another node share a credit
  bool operator==(const KindSizes&) const = default;
};
/// The kind for plans of flows whose messages need entries of that size.
constexpr RingKind flow_kind(int size) noexcept {
  return size < 2 ? RingKind::short_flow : size < 3 ? RingKind::longer_flow : RingKind::long_flow;
}

/// How many rings a team has, and how large they are. Equal on all members.
struct RingSizes {
  int ranks = 1;                 ///< on one node; of a team on several nodes, the most that any of them has
  int channels = 1;              ///< with rings
  int entries = 1;               ///< of a ring, the most that any has; a power of two, as all numbers of entries
  int rings = 1;                 ///< from a rank to another one on a channel
  std::size_t outbox_bytes = 0;  ///< of a channel's outbox, whole pages
  int own_channels = 0;  ///< behind the shared ones so many may have rings of their own, in areas of one channel
  // For a team on several nodes:
  int team_ranks = 0;  ///< 0: the team is on one node
  std::array<KindSizes, kRingKinds> kinds = {};
  int flow_sizes = kDistantSizes;  ///< so many sizes of entries are used for flows, and by exchanges
  int exchange_sizes = kDistantSizes;

  constexpr bool several_nodes() const noexcept { return team_ranks != 0; }
  constexpr KindSizes of(RingKind kind) const noexcept {
    return several_nodes() ? kinds[static_cast<std::size_t>(kind)] : KindSizes{entries, 1};
  }
  /// The ring of a kind's stream number `stream` of a pair: the exchange's is the first, and the rings of flows take
  /// turns, so that plans with few streams use the first rings only.
  constexpr int ring(RingKind kind, int stream) const noexcept {
    if (!several_nodes()) return stream;
    return kind == RingKind::exchange ? 0 : kFlowKinds * stream + static_cast<int>(kind);
  }
  /// Plans of the kind have messages for which so many of the sizes of entries suffice.
  constexpr int sizes_of(RingKind kind) const noexcept {
    return kind == RingKind::exchange ? exchange_sizes : flow_sizes;
  }
  bool operator==(const RingSizes&) const = default;
  /// A plan of flows may have so many streams from a rank to another one.
  constexpr int streams_most() const noexcept { return several_nodes() ? (rings - 1) / kFlowKinds : rings; }
};
/// RingSizes::own_channels at most.
inline constexpr int kOwnChannelsMost = 4096;
/// The memory of a member's standing rings is not bounded, since pages are taken when they are touched. Where a fabric
/// pins it, outboxes, entries for flows and entries for exchanges have a quarter of the bound each, and so have the
/// words on a node, where rings can have fewer entries.
inline constexpr std::size_t kUnbounded = SIZE_MAX;
/// Those of a team of so many ranks on one node, in up to `memory_bytes`. Equal on all members.
RingSizes ring_sizes(int ranks, int channels, std::size_t memory_bytes = kUnbounded) noexcept;
/// Those of a team of `team_ranks` on several nodes, of which none has more than `ranks`. `balances`: messages to other
/// nodes are dealt to engines by their credits, so that each has its own.
RingSizes distant_ring_sizes(int ranks, int team_ranks, int channels, bool balances,
                             std::size_t memory_bytes = kUnbounded) noexcept;
/// Those of a channel that has rings of its own, in a team whose shared channels have rings of those sizes, for plans
/// of so many slots and streams between two ranks that can use these. There is no outbox. Equal on all members.
RingSizes own_ring_sizes(const RingSizes& shared, int slots, int streams) noexcept;
/// The area of a team of up to so many ranks takes at most so much in a member.
std::size_t rings_bytes_most(int ranks, int channels, std::size_t memory_bytes = kUnbounded) noexcept;
/// The same for a team of up to `team_ranks` on several nodes.
std::size_t distant_rings_bytes_most(int ranks, int team_ranks, int channels, bool balances,
                                     std::size_t memory_bytes = kUnbounded) noexcept;

/// The memory of a member for standing rings: entries of the rings to it, counts of the rings from it, and lines of
/// buffer offers to it. What short calls touch comes first and is dense. Outboxes are elsewhere: signals tell where.
/// Rings of a rank to itself are in memory of the process.
class RingArea {
 public:
  RingArea() = default;
  explicit RingArea(const RingSizes& sizes) noexcept;

  const RingSizes& sizes() const noexcept { return sizes_; }
  std::size_t total_bytes() const noexcept { return total_bytes_; }
  // Words of a team on several nodes, for the ring to a member of another node:
  /// The credits, a word for each entry.
  std::size_t credits(int channel, int ring, int receiver) const noexcept { return distant(channel, ring, receiver); }
  /// The line in which the receiver tells where its entries of that size are.
  std::size_t grant(int channel, int ring, int receiver, int size) const noexcept {
    return distant(channel, ring, receiver) + credit_bytes_ + static_cast<std::size_t>(size) * kLineBytes;
  }
  /// The line in which a member of another node tells where its rings of an own channel are. These are behind all else.
  std::size_t told(std::size_t own_channel, int member) const noexcept {
    return told_ +
           (own_channel * static_cast<std::size_t>(sizes_.team_ranks) + static_cast<std::size_t>(member)) * kLineBytes;
  }
  /// The bytes at the beginning of the area that hold all words of the rings below `rings` of each pair. Before its
  /// first use a word is zero.
  std::size_t words_bytes(int rings) const noexcept;

  // Offsets from the beginning of the area of `member`. Both are places on the node.
  /// The first entry of a ring from `peer`.
  std::size_t entries(EntryKind kind, int channel, int ring, int member, int peer) const noexcept;
  /// The count of a ring to `peer`.
  std::size_t count(int channel, int ring, int member, int peer) const noexcept {
    return counts_ + pair(channel, member, peer) * counts_bytes_ +
           static_cast<std::size_t>(ring) * sizeof(std::uint64_t);
  }
  /// The first of the kPairOfferLines lines of `peer`'s buffer offers.
  std::size_t offers(int channel, int member, int peer) const noexcept {
    return offers_ + pair(channel, member, peer) * kPairOfferLines * kLineBytes;
  }

 private:
  /// The pairs of a member on earlier channels.
  std::size_t pairs(int channel) const noexcept {
    return static_cast<std::size_t>(channel) * static_cast<std::size_t>(sizes_.ranks - 1);
  }
  std::size_t pair(int channel, int member, int peer) const noexcept {
    return pairs(channel) + static_cast<std::size_t>(peer - (peer > member ? 1 : 0));
  }
  std::size_t distant(int channel, int ring, int peer) const noexcept {
    const std::size_t pair = static_cast<std::size_t>(channel) * static_cast<std::size_t>(sizes_.team_ranks) +
                             static_cast<std::size_t>(peer);
    return (ring == 0 ? 0 : words_bytes(ring)) + pair * (credit_bytes_ + kDistantSizes * kLineBytes);
  }

  RingSizes sizes_;
  std::size_t kind_bytes_[kEntryKinds] = {};  ///< of one ring, whole lines
  std::size_t firsts_[kEntryKinds] = {};      ///< where the entries of all rings 0 are
  std::size_t credit_bytes_ = 0;              ///< of a ring to another node
  std::size_t distant_bytes_ = 0;             ///< of the words of all rings of a number to other nodes
  std::size_t counts_bytes_ = 0;              ///< of an ordered pair
  std::size_t counts_ = 0;
  std::size_t offers_ = 0;
  std::size_t others_ = 0;      ///< the words of the rings from 1 on, ring by ring
  std::size_t ring_bytes_ = 0;  ///< from one of them to the next
  std::size_t told_ = 0;
  std::size_t total_bytes_ = 0;
};

}  // namespace torii
