// SPDX-License-Identifier: Apache-2.0
// Messages between members about the team of survivors, in rounds: proposals, the decision, lost engines, objects made,
// and why members leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "api/agreement/control_writer.hpp"
#include "runtime/base/status.hpp"

namespace torii {

/// Throws Error{transport} where memory that a member gives to a new team does not lie in its arena.
void check_proposal(int member, std::uint64_t memory_offset, std::size_t bytes, std::uint64_t arena_bytes);

/// For the team's caller. All functions but begin() are about the round that has begun.
class SurvivorMessages {
 public:
  explicit SurvivorMessages(ControlWriter& box) noexcept : box_(box) {}

  /// Goes to the first round that no member has left; each begins once. False: there are no more rounds. Decisions of
  /// members in `without`, and their reasons to leave, do not count, here and below.
  bool begin(const MemberSet& without) noexcept;
  /// From now on these members do not count either.
  void leave_out(const MemberSet& members) noexcept { without_.add(members); }
  /// From now on only these members count.
  void count_only(const MemberSet& members) noexcept;
  bool counts(int member) const noexcept { return !without_.has(member); }

  void put_proposal(const SurvivorProposal& own) noexcept;
  /// nullptr: the member has not come to the round. That of this rank is there once it has been put.
  const SurvivorProposal* proposal(int member) const noexcept;
  /// The engines by which nothing has come of a member's proposal; a set of bits. None where it has made no proposal.
  std::uint64_t missed_from(int member) const noexcept;
  /// Tells all members by which engines nothing has come of anybody's proposal.
  void put_missed(std::uint64_t engines) noexcept;
  /// The engines that a member has told so; nothing before.
  std::optional<std::uint64_t> missed_by(int member) const noexcept;
  /// The decision about the new team that this rank has made or taken over, or nullptr. It takes over that of the
  /// lowest member that has decided, unless this is above `lowest`, and passes it on to all.
  const ControlBlocks::Decision* decision(int lowest) noexcept;
  const ControlBlocks::Decision& own_decision() const noexcept { return box_.own().outbox.rounds[round_].decision; }
  /// Some member has a team, of any round.
  bool others_have_team() const noexcept;
  /// The same, or a member has decided for a team without this one, whether that member counts or not.
  bool is_left_out() const noexcept;
  /// Decides for these members, and for all engines that anybody has missed.
  void decide(const MemberSet& members) noexcept;
  /// Tells all members that the engines of the decision are closed here.
  void put_closed() noexcept;
  bool has_closed(int member) const noexcept;

  /// This member has made its object of the new team.
  void put_made() noexcept;
  bool has_put_made() const noexcept { return has_made_; }
  /// With the same decision as this rank.
  bool has_made(int member) const noexcept;
  /// A member with another decision than this rank's: the two will make no team together.
  bool decides_otherwise(int member) const noexcept;
  /// All members of the new team have made their objects: each returns from its call.
  void put_complete() noexcept;
  bool is_complete() const noexcept;
  /// This member leaves the round for a reason, its own or that of the member `origin`. Once; later reasons are not
  /// told.
  void leave(const RoundFailure& failure, int origin) noexcept;
  /// True when the member has left.
  bool has_left(int member) const noexcept;
  /// The reason of the lowest member for which any member has left, or nullptr.
  const ControlBlocks::Ending* ending() const noexcept;

 private:
  bool has_ended(std::size_t round) const noexcept;
  const ControlBlocks::Ending* left_by(int member, std::size_t round) const noexcept;
  void put_decision() noexcept;
  template <class Part>
  const Part* arrived(int member, Part ControlBlocks::Round::*part) const noexcept {
    return box_.arrived(member, round_, part);
  }
  ControlBlocks::Round& own() noexcept { return box_.own().outbox.rounds[round_]; }
  template <class Part>
  void put(std::size_t offset_in_round, const Part& part) noexcept;

  ControlWriter& box_;
  std::size_t next_ = 0;   ///< the first round that has not begun here
  std::size_t round_ = 0;  ///< the one that has begun last
  MemberSet without_ = {};
  bool has_decided_ = false;
  bool has_made_ = false;
  bool has_left_ = false;
};

}  // namespace torii
