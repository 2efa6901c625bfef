// SPDX-License-Identifier: Apache-2.0
// The standing rings of one channel of a team. They exist as long as the team; the plans of calls use them one after
// the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/fabric/transport.hpp"
#include "runtime/rings/ends_by_ring.hpp"
#include "runtime/rings/outbox.hpp"
#include "runtime/rings/ring_area.hpp"
#include "runtime/rings/ring_ends.hpp"

namespace torii {

/// Where the standing rings of a team are, by the rank in the team.
struct RingMembers {
  int rank = 0;                             ///< this one
  std::vector<int> context_ranks = {};      ///< of the members
  std::vector<std::uint64_t> offsets = {};  ///< of the members' areas in their arenas
  std::vector<int> places = {};  ///< among the members of this node; -1 on another one. Empty: all are here, in order

  /// The member's place on this node; -1: it is on another one.
  int place(int member) const noexcept { return places.empty() ? member : places[static_cast<std::size_t>(member)]; }
  bool is_distant(int member) const noexcept { return place(member) < 0; }
};

/// Ranks are those of the team. Not thread-safe.
class ChannelRings {
 public:
  /// The arguments must outlive the rings. The areas are zeroed. There is no outbox yet. Throws Error{internal} if a
  /// number of entries is no power of two.
  ChannelRings(Transport& transport, const RingArea& area, const RingMembers& members, int channel);

  const RingSizes& sizes() const noexcept { return area_.sizes(); }
  bool is_distant(int rank) const noexcept { return members_.is_distant(rank); }
  /// An end of a ring, made when it is first asked for. Ends stay where they are.
  SendEnd& to(int receiver, int ring);
  ReceiveEnd& from(int sender, int ring);
  /// An end towards another rank that the caller fills in, because its places are not those of the area. It has not
  /// been asked for before. A rank all of whose ends are added needs no RingMembers but its own number.
  SendEnd& add_to(int receiver, int ring) { return to_.of(receiver, ring).end; }
  ReceiveEnd& add_from(int sender, int ring) { return from_.of(sender, ring).end; }

  Outbox& outbox() noexcept { return outbox_; }
  const Outbox& outbox() const noexcept { return outbox_; }
  /// The memory of this rank's outbox: RingSizes::outbox_bytes at that offset of its arena, with any content. Calls
  /// that need none begin without it.
  void place_outbox(std::uint64_t offset) noexcept {
    outbox_offset_ = offset;
    outbox_memory_ = transport_.mapped(transport_.rank(), offset);
  }
  /// Between calls: memory of another size takes the place of what there was. That must stay as it is, for readers.
  void move_outbox(std::uint64_t offset, std::size_t bytes) noexcept {
    outbox_.move_to(bytes);
    place_outbox(offset);
  }
  bool has_outbox() const noexcept { return outbox_memory_ != nullptr; }
  std::byte* outbox_memory() const noexcept { return outbox_memory_; }
  /// Its place in this rank's arena.
  std::uint64_t outbox_offset() const noexcept { return outbox_offset_; }

  /// The first of the lines of buffer offers: this rank's to that peer, in the peer's arena, and the peer's to this
  /// rank.
  std::uint64_t offers_offset_at(int peer) const noexcept {
    return members_.offsets[static_cast<std::size_t>(peer)] + area_.offers(channel_, place(peer), place(members_.rank));
  }
  std::uint64_t offers_offset_from(int peer) const noexcept {
    return own_offset() + area_.offers(channel_, place(members_.rank), place(peer));
  }
  /// An exchange is bound to the rings. Throws std::bad_alloc.
  void allow_exchanges(int ranks) { exchange_offers_.resize(static_cast<std::size_t>(ranks)); }
  /// How many offers this rank has made to that peer in exchanges; the peer has made as many.
  std::uint64_t& exchange_offers(int peer) noexcept { return exchange_offers_[static_cast<std::size_t>(peer)]; }

  /// How many calls have used these rings: all members count alike.
  std::uint64_t calls() const noexcept { return calls_; }
  void count_call() noexcept { ++calls_; }

 private:
  /// A ring from the rank to itself: nobody else sees it.
  struct OwnRing {
    explicit OwnRing(const RingSizes& sizes);
    std::unique_ptr<std::byte[]> memory;
    SendEnd send;
    ReceiveEnd receive;
  };

  int place(int rank) const noexcept { return members_.place(rank); }
  std::uint64_t own_offset() const noexcept { return members_.offsets[static_cast<std::size_t>(members_.rank)]; }
  int context_rank(int rank) const noexcept { return members_.context_ranks[static_cast<std::size_t>(rank)]; }
  void set_entries(RingEnd& end, int receiver, int ring, int sender) const noexcept;
  void set_distant(SendEnd& end, int receiver, int ring) const noexcept;
  void set_distant(ReceiveEnd& end, int sender, int ring) const noexcept;
  OwnRing& own_ring(int ring);

  Transport& transport_;
  const RingArea& area_;
  const RingMembers& members_;
  const int channel_;
  EndsByRing<SendEnd> to_;
  EndsByRing<ReceiveEnd> from_;
  std::unordered_map<int, OwnRing> own_;        ///< by ring
  std::vector<std::uint64_t> exchange_offers_;  ///< by peer; empty before the first exchange
  Outbox outbox_;
  std::uint64_t outbox_offset_ = 0;
  std::byte* outbox_memory_ = nullptr;
  std::uint64_t calls_ = 0;
};

/// Those of all channels of a team.
class TeamRings {
 public:
  /// Those of the channels that calls share.
  TeamRings(Transport& transport, const RingSizes& sizes, RingMembers members);
  TeamRings(const TeamRings&) = delete;
  TeamRings& operator=(const TeamRings&) = delete;

  /// The area and the places of the shared channels.
  const RingArea& area() const noexcept { return shared_.area; }
  const RingMembers& members() const noexcept { return shared_.members; }
  std::size_t shared() const noexcept { return static_cast<std::size_t>(area().sizes().channels); }

  bool has(std::size_t channel) const noexcept { return channel < channels_.size() && channels_[channel] != nullptr; }
  ChannelRings& on(std::size_t channel) noexcept { return *channels_[channel]; }
  /// A channel behind the shared ones gets rings of its own, in an area of one channel. `offsets`: where it is in the
  /// members' arenas.
  void add(std::size_t channel, const RingSizes& sizes, std::vector<std::uint64_t> offsets);

 private:
  struct Place {
    RingArea area;
    RingMembers members;
  };

  Transport& transport_;
  const Place shared_;
  std::vector<std::unique_ptr<const Place>> own_;  ///< of the channels behind the shared ones that have rings
  std::vector<std::unique_ptr<ChannelRings>> channels_;
};

}  // namespace torii
