// SPDX-License-Identifier: Apache-2.0
// This rank's memory for a team: what it has taken of it, and what it takes besides for long payloads and for rings
// that are not in the formula.
#pragma once

#include <cstddef>
#include <cstdint>

#include "api/agreement/member_memory.hpp"
#include "api/agreement/membership.hpp"
#include "api/context/team_memory_pool.hpp"
#include "runtime/rings/ring_area.hpp"

namespace torii {

class ChannelRings;

/// For the team's caller.
class TeamMemory {
 public:
  /// For a team with rings of these sizes, whose memory was taken for up to `ranks_reserved` ranks. The members must
  /// outlive this. Where memory is short, takes the pages of this rank's messages of sends and receives. Throws
  /// Error{no_resource}.
  TeamMemory(const Membership& members, const RingSizes& rings, int ranks_reserved);

  PairsPlace pairs_place() const noexcept { return torii::pairs_place(ranks_reserved_, members_.context()); }
  const RingSizes& rings() const noexcept { return rings_; }
  std::size_t bytes() const noexcept { return bytes_; }
  /// Where the standing rings begin, which are behind all else.
  std::size_t rings_offset() const noexcept { return bytes_ - rings_bytes_; }
  std::size_t rings_bytes() const noexcept { return rings_bytes_; }
  /// For a team that is being made: where memory is short, takes the pages of the words of standing rings, since peers
  /// may write there before this rank's first call: as many of each pair as fit into a quarter of what is left. Throws
  /// Error{no_resource}.
  void reserve_rings(const RingArea& area);
  /// Where memory is short, takes the pages of a part of that memory, in which peers on other nodes are about to write.
  /// Throws Error{no_resource}.
  void reserve_told(std::size_t offset, std::size_t bytes);
  /// Before a plan uses standing rings whose words are in the first `bytes` of their memory: takes the pages where
  /// memory is short. Throws Error{no_resource}.
  void take_rings(std::size_t bytes);
  /// Before a call of a channel whose payloads are longer than a line and use up to `bytes` of its outbox: takes that,
  /// if it is the first such call, and where memory is short the pages. Throws Error{no_resource}.
  void take_outbox(ChannelRings& rings, std::size_t bytes);
  /// An outbox for rings of any size, where memory is short with its pages. Throws Error{no_resource}.
  OutboxMemory take_outbox(std::size_t bytes);
  /// Zeroed memory for the words of a channel's own rings or for entries, where memory is short with its pages. Throws
  /// Error{no_resource}.
  std::uint64_t take_words(std::size_t bytes);
  /// This rank has written into so much of the rings in any member's memory.
  std::size_t touched_ring_bytes() const noexcept { return touched_ring_bytes_; }

 private:
  bool is_memory_short() const;
  void reserve_rings(std::size_t bytes);
  template <class Take>
  OutboxMemory with_pages(const char* purpose, std::size_t bytes, std::size_t bytes_of_pages, Take&& take);
  void reserve_pairs();
  Error refusal(const char* purpose, std::size_t bytes, const Error& reason) const;

  const Membership& members_;
  const RingSizes rings_;
  std::size_t bytes_;
  std::size_t rings_bytes_;
  std::size_t used_bytes_most_;  ///< by sends, receives and standing rings, with outboxes of the usual size
  int ranks_reserved_;
  std::size_t touched_ring_bytes_ = 0;
  std::size_t reserved_ring_bytes_ = 0;
};

}  // namespace torii
