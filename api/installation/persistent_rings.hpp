// SPDX-License-Identifier: Apache-2.0
// The standing rings of persistent operations. Members prepare and free these operations in one order, but start them
// in any: each has a channel of its own, with rings that no other operation uses meanwhile. Their memory is taken when
// the first operation of a channel is prepared, and stays with the channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "api/agreement/membership.hpp"
#include "api/context/team_memory_pool.hpp"
#include "api/installation/team_memory.hpp"
#include "api/installation/told_places.hpp"
#include "runtime/rings/channel_rings.hpp"

namespace torii {

/// For the team's caller. Nothing here waits: members tell each other where their rings are, within a node each in a
/// table of its own, to another node by a message. An operation begins when the places of all are known.
class PersistentRings {
 public:
  /// The arguments must outlive this.
  /// Throws Error{no_resource}.
  PersistentRings(const Membership& members, TeamMemory& memory, TeamRings& rings)
      : members_(members), memory_(memory), rings_(rings), told_(members) {
    reserve_told(0);
  }
  PersistentRings(const PersistentRings&) = delete;
  PersistentRings& operator=(const PersistentRings&) = delete;

  /// Whether an operation that needs rings of these sizes may take the channel: it has none yet, or as large ones.
  /// Equal on all members.
  bool has_room(std::size_t channel, const RingSizes& needed) const noexcept;
  /// Throws Error{no_resource} if there cannot be so many channels with rings, on all members alike.
  void check(std::size_t channel) const;
  /// The operation that has been prepared takes the channel, for which it has room. Throws Error{no_resource}.
  void open(std::size_t channel, const RingSizes& needed);

  /// Whether the rings of a channel can be used: all members have told where theirs are. Throws std::bad_alloc,
  /// Error{transport} for a place outside the member's arena, and Error{mismatch} if a member has other rings there:
  /// nothing is stored before all are alike.
  bool are_known(std::size_t channel);
  bool has_told(int member, std::size_t channel) const noexcept { return told(member, channel) != 0; }
  /// Whether all that this rank has told other nodes has left it.
  bool have_left() const noexcept { return told_.have_left(); }

  // For GoneTeam:
  /// Memory that peers read or write until the team is gone.
  std::vector<OutboxMemory> outboxes() const;
  /// Where members of other nodes write.
  std::vector<Stretch> words() const;
  PutOwner take_puts() noexcept { return told_.take_puts(); }

 private:
  struct Place {
    RingSizes sizes;  ///< those of its area; the outbox is that of the largest operation so far
    std::uint64_t words_offset = 0;
    OutboxMemory outbox;
    bool has_rings = false;
  };
  const Place& place_of(std::size_t channel) const noexcept;
  void take_words(std::size_t channel, Place& place, const RingSizes& needed);
  void take_table();
  bool is_distant(int member) const noexcept { return rings_.on(0).is_distant(member); }
  /// The line of `teller` in the arena of `reader`.
  std::uint64_t told_line(int reader, std::size_t channel, int teller) const noexcept {
    return rings_.members().offsets[static_cast<std::size_t>(reader)] +
           rings_.area().told(channel - rings_.shared(), teller);
  }
  void reserve_told(std::size_t own_channel);
  std::uint64_t told(int member, std::size_t channel) const noexcept;
  std::uint64_t offset_of(std::uint64_t word, int member, std::size_t channel) const;

  const Membership& members_;
  TeamMemory& memory_;
  TeamRings& rings_;
  std::vector<Place> places_;  ///< of the channels behind the shared ones
  std::uint64_t table_offset_ = 0;
  std::size_t told_reserved_ = 0;       ///< own channels whose told lines have pages where memory is short
  std::vector<OutboxMemory> replaced_;  ///< outboxes that were too small for a later operation
  ToldPlaces told_;
};

}  // namespace torii
