// SPDX-License-Identifier: Apache-2.0
// The sends and receives of a team.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/agreement/member_memory.hpp"
#include "api/agreement/membership.hpp"
#include "api/calls/request.hpp"
#include "runtime/point_to_point/point_to_point.hpp"

namespace torii {

/// One thread at a time. Nothing here waits.
class TeamPairs {
 public:
  /// The messages are between the members as the team's rings have them.
  TeamPairs(const Membership& members, PairsPlace place, const TeamRings& rings) noexcept
      : members_(members), place_(place), rings_(rings) {}

  /// False while this rank has neither sent nor received: then nothing moves, and the memory is untouched.
  bool are_used() const noexcept { return pairs_ != nullptr; }
  /// A member of this node has begun to send or receive, and this rank does not take messages yet.
  bool are_wanted() const noexcept;
  /// Takes messages from now on. Throws Error.
  void install();
  int open() const noexcept { return pairs_ == nullptr ? 0 : pairs_->open(); }
  /// Those of them that are receives which have met no send.
  int unmet() const noexcept { return pairs_ == nullptr ? 0 : pairs_->unmet(); }

  /// Throws Error{invalid_argument}.
  void check(const PairCall& call) const;
  /// For a call that has been checked: true if it has ended within so many polls, and nothing is left of it.
  bool ends_at_once(PairCall& call, int polls) noexcept;
  /// Begins the call, which has been checked; it may end at once. Throws Error.
  void start(Request& request);
  /// True if the receive had met no send: it ends with status `aborted`.
  bool withdraw(Request& request) noexcept;
  /// True if something moved.
  bool progress() noexcept;
  /// Those that have ended since the last time, as a list; their owners are the requests.
  PairOperation* take_done() noexcept { return pairs_ == nullptr ? nullptr : pairs_->take_done(); }
  /// Bad when no send and no receive can go on; why, and because of which member.
  Status status() const noexcept { return pairs_ == nullptr ? Status::ok : pairs_->status(); }
  int failed_member() const noexcept;
  std::string failure_text() const;
  /// All that are open end with this status.
  void abandon(Status status) noexcept;
  std::optional<PutOwner> take_puts() noexcept;
  /// So much of any member's memory for messages, from its beginning, this rank may have written.
  std::size_t touched_bytes() const noexcept;

 private:
  Envelope envelope_of(const PairCall& call) const noexcept;
  void note_length(std::size_t bytes) noexcept { has_long_sends_ = has_long_sends_ || bytes > kPayloadInLineMost; }
  PairArea area() const noexcept;

  const Membership& members_;
  const PairsPlace place_;
  const TeamRings& rings_;
  std::unique_ptr<PointToPoint> pairs_;
  bool abandoned_ = false;
  bool has_long_sends_ = false;  ///< whose payloads may be behind the words
};

}  // namespace torii
