// SPDX-License-Identifier: Apache-2.0
// What ends a call before its time, found in what a rank knows of itself and of the members that it watches.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/agreement/member_set.hpp"
#include "api/agreement/refused_calls.hpp"
#include "api/agreement/team_control.hpp"
#include "runtime/base/status.hpp"

namespace torii {

/// Why a team fails.
struct Finding {
  Status status;
  int member;  ///< that the text names
  std::string text;
  MemberSet absent = {};  ///< of a timeout, for torii_team_absent; the text needs their number and the lowest only
};

/// What this rank knows of another member. FailureMonitor fills the parts that the next question needs.
struct MemberView {
  int member = 0;
  std::string_view host;
  bool is_distant = false;  ///< on another node

  // For find_refused_call(), find_other_call().
  CallSnapshot call = {};       ///< at the place of this rank's call; sequence 0: not known
  CallSnapshot last_call = {};  ///< at the place of this rank's last call in order, if that is another one
  /// As CallBoard::settled_by(), if this rank has refused a call. Looked at after the calls above.
  std::uint64_t last_settled = 0;
  /// The member may be writing them. Read after the above: a member writes a notice before it tells more of its calls.
  std::span<const RefusalNotice> refusals;

  // For find_dead_member(), find_silent_members().
  bool is_alive = true;
  bool is_left_out = false;
  bool has_ended = false;  ///< this call, or it makes no more: nobody waits for it
  bool has_come = false;   ///< to this call
  std::int64_t attentive_ns = 0;

  // For find_departed_member(), find_awaited_departed().
  bool has_departed = false;
  std::optional<std::uint64_t> departed_after;  ///< as CallBoard
  bool is_awaited = false;                      ///< by the operation in which this rank waits
};

/// What a rank knows of itself while it waits in a call.
struct OwnView {
  int member = 0;
  std::string_view host;
  std::uint64_t sequence = 0;      ///< of the call; 0: a send or a receive
  int peer = -1;                   ///< the other end of a send or a receive; -1: any rank
  std::uint64_t last_settled = 0;  ///< the last call that this rank will not refuse any more
  const RefusedCalls* refused = nullptr;
  std::span<const CallSnapshot> calls;  ///< its call records, by record_index(); sequence 0: none
  std::int64_t now_ns = 0;
  std::int64_t quiet_ns = 0;           ///< as Waiting, like the next two
  std::int64_t attentive_ns = 0;       ///< so long of quiet_ns this process has run
  std::int64_t resumed_ns = 0;         ///< when it ran again after a stop
  std::int64_t suspected_ns = 0;       ///< so long the departed member seems to be awaited
  std::int64_t timeout_ns = 0;         ///< of the call
  std::int64_t team_timeout_ns = 0;    ///< of sends and receives, and of other members
  std::function<std::string()> call;   ///< its text: "allreduce of 4 x f32, op sum"
  std::function<std::string()> phase;  ///< "in 'up tree 0', segment 7, waiting for rank 3 on host a"

  /// After this time the members' reports about their calls have come. They name a difference better than a member
  /// that has departed does.
  std::int64_t calls_are_told_ns() const noexcept;
  bool waits_long() const noexcept { return quiet_ns >= calls_are_told_ns(); }
};

// All may throw std::bad_alloc. Several members can be at fault: the lowest of `watched` is named.

/// A call that this rank or a watched member refused alone.
std::optional<Finding> find_refused_call(std::span<const MemberView> watched, const OwnView& own);
/// A dead member of another node may have ended this call before it died, and then this rank mostly goes on. So such a
/// member counts as lost only after this rank has waited for a moment.
std::optional<Finding> find_dead_member(std::span<const MemberView> watched, const OwnView& own);
/// Whether this rank has another call at the place of a member's.
bool is_other_call(const CallSnapshot& theirs, std::span<const CallSnapshot> own_calls) noexcept;
/// A member with another call at the same place. Persistent operations, sends and receives are in no order with other
/// calls, so for them the last call before is compared as well.
std::optional<Finding> find_other_call(std::span<const MemberView> watched, const OwnView& own);
/// A member that destroyed the team before it came to this call in order.
std::optional<Finding> find_departed_member(std::span<const MemberView> watched, const OwnView& own);
/// The lowest member that has departed and seems to be awaited; -1: none.
int departed_and_awaited(std::span<const MemberView> watched) noexcept;
/// That member, once its last messages must have come. CallBoard::completed_by() counts no persistent operations, no
/// sends and no receives; a member that has ended its part of such an operation before it left is no longer awaited.
std::optional<Finding> find_awaited_departed(std::span<const MemberView> watched, const OwnView& own);
/// The timeout of a call. Along a chain of partners the rank that this one waits for may itself wait. So the text names
/// the members that have not come to the call, and those that are in it but have stopped looking.
Finding find_silent_members(std::span<const MemberView> watched, const OwnView& own);
/// The timeout of a send or a receive. Only the other end can be the cause; of a receive from any rank nobody is.
Finding find_silent_peer(const OwnView& own);

}  // namespace torii
