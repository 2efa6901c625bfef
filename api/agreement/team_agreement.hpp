// SPDX-License-Identifier: Apache-2.0
// The messages of the members of a team beside operations. Each user takes the part that it needs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "api/agreement/call_board.hpp"
#include "api/agreement/failure_records.hpp"
#include "api/agreement/membership.hpp"
#include "api/agreement/survivor_vote.hpp"
#include "api/agreement/team_control.hpp"
#include "runtime/fabric/put_owner.hpp"

namespace torii {

/// One per team and rank: owns the parts, and says this rank's last word.
class TeamAgreement {
 public:
  TeamAgreement() = default;
  virtual ~TeamAgreement() = default;
  TeamAgreement(const TeamAgreement&) = delete;
  TeamAgreement& operator=(const TeamAgreement&) = delete;

  virtual FailureRecords& failures() noexcept = 0;
  virtual CallBoard& calls() noexcept = 0;
  virtual SurvivorVote& vote() noexcept = 0;

  /// This rank's last word to all members. It has written into at most these parts of a member's memory.
  virtual void depart(const TouchedMemory& touched) noexcept = 0;
  /// The owners that still count this object's puts, after depart().
  virtual std::vector<PutOwner> take_puts() = 0;
};

/// By shared memory where all members are on one node, otherwise by puts. `members` must outlive the agreement.
std::unique_ptr<TeamAgreement> make_team_agreement(const Membership& members);

}  // namespace torii
