// SPDX-License-Identifier: Apache-2.0
// The members of a team agree on which leaves each of them has.
#include <algorithm>

#include "api/team/team.hpp"

namespace torii {

/// The exchange is a call of the team, so it comes in the order of the team's calls, and notices lost ranks as they do.
const LeafIntervals& Team::agree_on_leaves(const LeafClaim& own) {
  constexpr std::uint32_t kLeavesTag = 0x6c656176;  // "leav": such an exchange meets no other call of the library
  std::vector<LeafClaim> claims(static_cast<std::size_t>(ranks()));
  CallDescription call = internal_call(Collective::all_gather, &own, claims.data());
  call.spec.count = sizeof(LeafClaim) / sizeof(std::uint64_t);
  call.spec.type = Type::u64;
  call.spec.tag = kLeavesTag;
  if (const Status status = operations_.run(call); status != Status::ok) throw Error(status, last_error());
  auto fresh = std::make_unique<const LeafIntervals>(intervals_of(claims));
  const auto known = std::ranges::find_if(leaves_, [&](const auto& one) { return *one == *fresh; });
  if (known != leaves_.end()) return **known;
  leaves_.push_back(std::move(fresh));
  return *leaves_.back();
}

}  // namespace torii
