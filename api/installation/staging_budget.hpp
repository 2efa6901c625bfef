// SPDX-License-Identifier: Apache-2.0
// Assigns the staging memory of a team to plans, in the order of calls, and empties it when it is used up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "api/agreement/install_board.hpp"
#include "api/agreement/member_memory.hpp"
#include "api/agreement/membership.hpp"
#include "api/installation/start_waits.hpp"

namespace torii {

class ChannelRings;

/// Every member makes the same calls, so every member assigns the same places: offsets need no messages.
class StagingBudget {
 public:
  /// For a team whose memory was taken for up to `ranks_reserved` ranks. The arguments must outlive the budget. Where
  /// memory is short, takes the pages of this rank's messages of sends and receives. Throws Error{no_resource}.
  StagingBudget(const Membership& members, InstallBoard& board, int ranks_reserved);

  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t used_bytes() const noexcept { return used_bytes_; }
  PairsPlace pairs_place() const noexcept { return torii::pairs_place(ranks_reserved_, members_.context()); }
  std::size_t memory_bytes() const noexcept { return memory_bytes_; }
  /// Where the standing rings begin in it; nothing where there are none.
  std::optional<std::size_t> rings_offset() const noexcept {
    const std::size_t bytes = team_rings_bytes(ranks_reserved_, members_.context());
    return bytes == 0 ? std::nullopt : std::optional(memory_bytes_ - bytes);
  }
  /// For a team that is being made: where memory is short, takes the pages of the words of standing rings in the first
  /// `bytes` of their memory. Peers may write there before this rank's first call. Throws Error{no_resource}.
  void reserve_rings(std::size_t bytes);
  /// Before a plan uses standing rings whose words are in the first `bytes` of their memory: takes the pages where
  /// memory is short. Throws Error{no_resource}.
  void take_rings(std::size_t bytes);
  /// Before the first call of a channel whose payloads are longer than a line. Where memory is short, takes the pages
  /// too. Throws Error{no_resource}.
  void take_outbox(ChannelRings& rings);
  /// This rank has written into no other parts of any member's memory.
  TouchedMemory touched() const noexcept { return {control_bytes_ + touched_bytes_, ring_bytes_}; }

  bool has_room(std::size_t bytes) const noexcept { return used_bytes_ + bytes <= bytes_; }
  /// Takes the pages of the next `bytes` where memory is short. Throws Error{no_resource}.
  void reserve(std::size_t bytes);
  /// The offset of the next place in the arena of that member.
  std::uint64_t next_offset(const Member& member) const noexcept {
    return member.memory_offset + control_bytes_ + used_bytes_;
  }
  void take(std::size_t bytes) noexcept;
  /// Takes back all places. Collective in the sense of order: every rank comes here at the same call. `forget` drops
  /// the installed plans. Throws what `waits` throws.
  void recycle(StartWaits& waits, const std::function<void()>& forget);

 private:
  bool is_memory_short() const;
  void reserve_pairs();
  void wait_for_epoch(StartWaits& waits, std::uint64_t epoch);

  const Membership& members_;
  InstallBoard& board_;
  std::size_t bytes_;
  std::size_t control_bytes_;  ///< of a team's memory before the staging
  std::size_t memory_bytes_;
  int ranks_reserved_;
  std::size_t ring_bytes_ = 0;  ///< of standing rings, the most that plans use
  std::size_t reserved_ring_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t touched_bytes_ = 0;  ///< the most that has been assigned
  std::uint64_t epoch_ = 0;        ///< twice the number of times that the staging was emptied
};

}  // namespace torii
