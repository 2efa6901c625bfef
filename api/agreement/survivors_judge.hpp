// SPDX-License-Identifier: Apache-2.0
// Judges a round about the team of survivors by its proposals: who belongs to the team, whom others wait for, or why
// there is none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/agreement/survivors_record.hpp"
#include "runtime/base/status.hpp"

namespace torii {

/// A round as one member sees it.
class RoundView {
 public:
  RoundView() = default;
  virtual ~RoundView() = default;
  RoundView(const RoundView&) = delete;
  RoundView& operator=(const RoundView&) = delete;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  /// Whether the member has come to the round, with a proposal.
  virtual bool has_come(int member) const = 0;
  virtual SurvivorProposal proposal(int member) const = 0;
  /// False for a member that is dead, or that a team of survivors has left out.
  virtual bool lives(int member) const = 0;
  /// False for a member that is proved to be dead.
  virtual bool may_live(int member) const = 0;
  /// Two teams might be made that do not know of each other.
  virtual bool may_be_divided() const = 0;
  /// "rank 3 on host a, rank 5 on host b".
  virtual std::string text(const std::vector<int>& members) const = 0;
};

struct Judgement {
  enum class Verdict {
    waits,    ///< for `members`
    fails,    ///< with `failure`
    chooses,  ///< `members`
  };
  Verdict verdict;
  MemberSet members = {};
  RoundFailure failure = {};  ///< of one that waits: what it ends with, where that is known
  int yields_to = -1;         ///< of one that waits: the member that leaves it out; -1: none
  MemberSet without = {};     ///< of one that chooses: those that were left out
};

/// The members that have come.
MemberSet come_to(const RoundView& view) noexcept;
/// For a member that has made its proposal; `come` is what come_to() has given. A member that others leave out waits
/// for them and judges nothing, unless it leaves them out too and has the majority. Where a member leaves others out,
/// their proposals count for nothing. If one of several equal calls leaves a member out, all leave it out: the maker
/// of that call may know from another team that it is lost. A majority waits for the proof of deaths that it needs.
Judgement judge(const RoundView& view, const MemberSet& come) noexcept;
/// Why there is no team when the deadline has passed while judge() says that this member waits.
RoundFailure judge_late(const RoundView& view, const MemberSet& come, const Judgement& waits,
                        std::int64_t timeout_ns) noexcept;
/// The same where the members of the team were chosen, and `absent` have not made their object.
RoundFailure late_object(const RoundView& view, const MemberSet& absent, std::int64_t timeout_ns) noexcept;
/// Whether the members `ready`, which have made their object, may have the team without hearing of the others. The
/// others may have made another team, so only a majority may, unless this member allows minorities. Chooses or fails.
Judgement judge_ready(const RoundView& view, const MemberSet& ready) noexcept;
/// `rank` and `other` have taken over different decisions: two members have decided that do not reach each other, or of
/// which one has died.
RoundFailure divided(int rank, int other) noexcept;
/// A member's own reason, as the others tell it.
RoundFailure refusal_of(int member, Status status, const char* text) noexcept;

/// The error that survivors() throws if a round has ended without a team.
class RoundError : public Error {
 public:
  explicit RoundError(const RoundFailure& failure, bool others_may_go_on = false)
      : Error(static_cast<Status>(failure.status), failure.text, failure.member),
        absent_(failure.absent),
        others_may_go_on_(others_may_go_on) {}
  const MemberSet& absent() const noexcept { return absent_; }
  /// Other members may have the team, and use the memory that this one gave.
  bool others_may_go_on() const noexcept { return others_may_go_on_; }

 private:
  MemberSet absent_;
  bool others_may_go_on_;
};

}  // namespace torii
