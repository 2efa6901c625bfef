// SPDX-License-Identifier: Apache-2.0
// Answers whether a team works.
#include "api/running/team_health.hpp"

#include <utility>

namespace torii {

void TeamHealth::tell(Cause cause) noexcept {
  tell_absent(cause.absent);
  cause_ = std::move(cause);
  is_told_.store(true, std::memory_order_release);
}

void TeamHealth::tell_absent(const MemberSet& members) noexcept {
  const std::lock_guard lock(mutex_);
  absent_ = members;
}

MemberSet TeamHealth::absent() const noexcept {
  const std::lock_guard lock(mutex_);
  return absent_;
}

Cause TeamHealth::verdict() const {
  if (is_told_.load(std::memory_order_acquire)) return cause_;
  const std::vector<int> lost = lost_members();
  if (!lost.empty()) return {Status::peer_lost, members_.text(lost) + (lost.size() == 1 ? " is lost" : " are lost")};
  if (!failed_.is_set()) return {Status::ok, {}};
  return {Status::poisoned, "another rank has failed the team; this rank's next call says why"};
}

std::vector<int> TeamHealth::lost_members() const {
  // A read of a dying process fails before the system says that the process has ended.
  const bool names_lost = is_told_.load(std::memory_order_acquire) && cause_.status == Status::peer_lost;
  std::vector<int> lost;
  for (int member = 0; member < members_.ranks(); ++member) {
    if (!members_.lives(member) || (names_lost && cause_.member == member)) lost.push_back(member);
  }
  return lost;
}

}  // namespace torii
