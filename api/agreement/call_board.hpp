// SPDX-License-Identifier: Apache-2.0
// The calls of the members of a team, as far as this rank knows them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "api/agreement/refused_calls.hpp"
#include "api/agreement/team_control.hpp"

namespace torii {

/// For the team's caller.
class CallBoard {
 public:
  // The calls of a member.
  /// A call that the member has told of; if the member's call records can be read, the one with number `sequence`.
  virtual std::optional<CallSnapshot> snapshot_of(int member, std::uint64_t sequence) noexcept = 0;
  /// True when the member is known to have come to that call, or to a later one of the same order.
  virtual bool has_come_to(int member, std::uint64_t sequence) noexcept = 0;
  /// The last call up to which the member has ended all.
  virtual std::uint64_t completed_by(int member) noexcept = 0;
  /// The last call up to which a member of this node has made or refused all: its notices of refused ones are there to
  /// be read. 0: not known, as always of members of other nodes, whose messages may overtake each other.
  virtual std::uint64_t settled_by(int member) noexcept = 0;
  /// When the member last looked after a call that it waits in, as far as this rank knows.
  virtual std::int64_t last_attentive_ns(int member) noexcept = 0;
  virtual std::span<const RefusalNotice> refusals_of(int member) noexcept = 0;
  /// True when the member makes no more calls.
  virtual bool has_departed(int member) noexcept = 0;
  /// The last call of a member that makes no more, as completed_by(); nothing until it is known.
  virtual std::optional<std::uint64_t> departed_after(int member) noexcept = 0;

  // The calls of this rank.
  /// Tells of this rank's call, which has been quiet since `quiet_since_ns` (0: it has not).
  virtual void publish(const CallSnapshot& own, std::int64_t now_ns, std::int64_t quiet_since_ns) noexcept = 0;
  /// True when publish() told of a call in the wait that now ends: tell_end() must follow.
  bool must_report_end() const noexcept { return must_report_end_; }
  virtual void tell_end(const CallSnapshot& own) noexcept = 0;
  /// Tells the members which call this rank has refused.
  virtual void put_refusal(const RefusalNotice& notice) noexcept = 0;
  /// This rank makes no more calls, and departs when its requests are gone.
  virtual void leave() noexcept = 0;

 protected:
  ~CallBoard() = default;
  void set_must_report_end(bool must_report) noexcept { must_report_end_ = must_report; }

 private:
  bool must_report_end_ = false;
};

}  // namespace torii
