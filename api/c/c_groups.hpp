// SPDX-License-Identifier: Apache-2.0
// Groups of the C interface: what the calling thread has begun and not ended.
#pragma once

#include <vector>

#include "api/c/c_objects.hpp"

namespace torii::c {

/// The calls of a thread between torii_group_begin and torii_group_end.
struct Group {
  torii_team* team;
  std::vector<torii_request*> requests;  ///< sends and receives, which have started
  CallGroup* calls;                      ///< collectives, which have not; of the team's pool
};

/// The calling thread's; nullptr if it is in no group of the team.
Group* group_of(const torii_team* team) noexcept;

/// Whether the calling thread is in a group of the team. Every call asks: without groups this is one load.
inline bool is_in_group(const torii_team* team) noexcept {
  return team->open_groups.load(std::memory_order_relaxed) != 0 && group_of(team) != nullptr;
}

/// The collective joins the thread's group of the team.
torii_status join_group(torii_team* team, const CallArguments& arguments) noexcept;

/// What refused_on() does; in a group the group is refused. For calls that would have joined it.
torii_status refused_or_in_group(torii_team* team, torii_status status) noexcept;

/// What run_to_end() does; in a group the call joins it.
inline torii_status run_or_join(torii_team* team, const CallArguments& arguments) noexcept {
  return team != nullptr && is_in_group(team) ? join_group(team, arguments) : run_to_end(team, arguments);
}

}  // namespace torii::c
