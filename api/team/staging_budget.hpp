// SPDX-License-Identifier: Apache-2.0
// Assigns the staging memory of a team to plans, in the order of calls, and empties it when it is used up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "api/team/membership.hpp"
#include "api/team/start_waits.hpp"
#include "api/team/team_agreement.hpp"
#include "api/team/team_pairs.hpp"

namespace torii {

/// Every member makes the same calls, so every member assigns the same places: offsets need no messages.
class StagingBudget {
 public:
  /// For a team whose memory was taken for up to `ranks_reserved` ranks. The arguments must outlive the budget. Where
  /// memory is short, takes the pages of this rank's messages of sends and receives. Throws Error{no_resource}.
  StagingBudget(const Membership& members, TeamAgreement& agreement, int ranks_reserved);

  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t used_bytes() const noexcept { return used_bytes_; }
  /// Control memory and staging of a member; the messages of sends and receives come behind.
  PairsPlace pairs_place() const noexcept { return {control_bytes_ + bytes_, pair_slot_bytes(ranks_reserved_)}; }
  std::size_t memory_bytes() const noexcept { return memory_bytes_; }
  /// The most of that memory, from its beginning, that this rank may have written into.
  std::size_t touched_bytes() const noexcept { return control_bytes_ + touched_bytes_; }

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
  TeamAgreement& agreement_;
  std::size_t bytes_;
  std::size_t control_bytes_;  ///< of a team's memory before the staging
  std::size_t memory_bytes_;
  int ranks_reserved_;
  std::size_t used_bytes_ = 0;
  std::size_t touched_bytes_ = 0;  ///< the most that has been assigned
  std::uint64_t epoch_ = 0;        ///< twice the number of times that the staging was emptied
};

/// Bytes of a member's control memory and of its staging, for teams of up to `ranks` ranks of that context.
std::size_t team_control_bytes(int ranks, const Context& context) noexcept;
std::size_t team_staging_bytes(int ranks, Context& context) noexcept;
/// For a context whose memory is not pinned.
std::size_t team_staging_bytes(int ranks) noexcept;
/// All memory of a member: control memory, staging, messages of sends and receives.
std::size_t team_memory_bytes(int ranks, Context& context);

}  // namespace torii
