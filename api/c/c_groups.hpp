// SPDX-License-Identifier: Apache-2.0
// Groups of the C interface: what the calling thread has begun and not ended.
#pragma once

#include <vector>

#include "api/c/c_objects.hpp"

namespace torii::c {

/// The calls of a thread between torii_group_begin and torii_group_end.
struct Group {
  torii_team* team;
  std::uint64_t team_number;
  std::vector<torii_request*> requests;  ///< sends and receives, which have started
  CallGroup* calls;                      ///< collectives, which have not; of the team's pool
};

/// The calling thread's; nullptr if it is in no group of the team.
Group* group_of(const torii_team* team) noexcept;

/// The same for every call, without groups by one load. `team` may be nullptr.
inline Group* open_group(const torii_team* team) noexcept {
  if (team == nullptr || team->open_groups.load(std::memory_order_relaxed) == 0) return nullptr;
  return group_of(team);
}
inline bool is_in_group(const torii_team* team) noexcept { return open_group(team) != nullptr; }

/// The collective joins the group.
torii_status join_group(Group& group, const CallDescription& call) noexcept;

/// refused_on(), or the refusal of the thread's group: for calls that would have joined it.
torii_status refused_or_in_group(torii_team* team, torii_status status) noexcept;

/// Makes the call and waits for its end, or the call joins the thread's group.
inline torii_status run_or_join(torii_team* team, const CallDescription& call) noexcept {
  if (team == nullptr) return invalid("team is NULL");
  Group* const group = open_group(team);
  return group != nullptr ? join_group(*group, call) : to_c(team->team->operations().run(call));
}

}  // namespace torii::c
