// SPDX-License-Identifier: Apache-2.0
// Tells any thread if a team works.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "api/agreement/failure_records.hpp"
#include "api/agreement/membership.hpp"

namespace torii {

/// The team's caller tells the cause of a failure; the questions may come from any thread.
class TeamHealth {
 public:
  /// The members must outlive this.
  TeamHealth(const Membership& members, FailureSign failed) noexcept : members_(members), failed_(failed) {}

  /// Why the team failed. Once.
  void tell(Cause cause) noexcept;
  /// Members that others have waited for in vain while they chose the survivors.
  void tell_absent(const MemberSet& members) noexcept;
  /// For the team's caller; until tell() its status is ok.
  const Cause& cause() const noexcept { return cause_; }

  /// The cause, once it has been told. Before: `peer_lost` if members are lost, or `poisoned` if another rank has
  /// failed the team.
  Cause verdict() const;
  /// Members that are known to be lost, ascending.
  std::vector<int> lost_members() const;
  /// Those that the last timeout names, in a call or among the survivors; the same on all that report it.
  MemberSet absent() const noexcept;

 private:
  const Membership& members_;
  FailureSign failed_;
  Cause cause_ = {Status::ok, {}};
  mutable std::mutex mutex_;
  MemberSet absent_ = {};
  std::atomic<bool> is_told_ = false;  ///< cause_ no longer changes: set with release, read with acquire
};

}  // namespace torii
