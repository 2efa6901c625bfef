// SPDX-License-Identifier: Apache-2.0
// Groups of collectives, sends and receives.
#include "api/c/c_groups.hpp"

#include <torii/torii.h>

#include <algorithm>
#include <string>
#include <utility>

#include "api/c/c_requests.hpp"
#include "runtime/base/cancellation.hpp"

using torii::Status;
using torii::c::answered;
using torii::c::finish;
using torii::c::Group;
using torii::c::group_of;
using torii::c::invalid;
using torii::c::to_c;

namespace {

/// The calling thread's, one for each team at most.
thread_local std::vector<Group> groups;

/// Keeps the reason of the first bad status, which later failures would replace.
class FirstFailure {
 public:
  void add(torii_status status) noexcept {
    if (status == TORII_OK || status_ != TORII_OK) return;
    status_ = status;
    (void)answered([&] { reason_ = torii::last_error(); });
  }
  torii_status tell() const noexcept {
    if (status_ != TORII_OK) torii::set_last_error(reason_);
    return status_;
  }

 private:
  torii_status status_ = TORII_OK;
  std::string reason_;
};

}  // namespace

namespace torii::c {

Group* group_of(const torii_team* team) noexcept {
  const auto is_of_team = [team](const Group& one) { return one.team == team && one.team_number == team->number; };
  const auto found = std::ranges::find_if(groups, is_of_team);
  return found == groups.end() ? nullptr : &*found;
}

torii_status join_group(Group& group, const CallDescription& call) noexcept {
  const torii_status status = answered([&] { group.calls->add(call, group.team->team->members()); });
  if (status != TORII_OK) group.calls->refuse(static_cast<Status>(status), last_error());
  return status;
}

torii_status refused_or_in_group(torii_team* team, torii_status status) noexcept {
  Group* const group = open_group(team);
  if (group == nullptr) return refused_on(team, status);
  group->calls->refuse(static_cast<Status>(status), last_error());
  return status;
}

}  // namespace torii::c

extern "C" {

torii_status torii_group_begin(torii_team* team) {
  if (team == nullptr) return invalid("team is NULL");
  if (team->context->context.is_forked_child()) return invalid(torii::c::kForked);
  if (group_of(team) != nullptr) return invalid("this thread is in a group of that team already; groups do not nest");
  const torii_status status = answered([&] {
    groups.reserve(groups.size() + 1);
    // A group that this thread left open in an earlier team at this address has gone with that team.
    std::erase_if(groups, [team](const Group& one) { return one.team == team; });
    groups.push_back({team, team->number, {}, team->group_pool.take()});
  });
  if (status == TORII_OK) ++team->open_groups;
  return status;
}

torii_status torii_group_end(torii_team* team) {
  if (team == nullptr) return invalid("team is NULL");
  if (team->context->context.is_forked_child()) return invalid(torii::c::kForked);
  Group* const found = group_of(team);
  if (found == nullptr) {
    return invalid("this thread is in no group of that team: torii_group_begin comes first");
  }
  const torii::CancellationHeld held;
  Group group = std::move(*found);
  groups.erase(groups.begin() + (found - groups.data()));
  --team->open_groups;
  FirstFailure first;
  first.add(to_c(group.calls->run(*team->team)));
  team->group_pool.give_back(group.calls);
  for (torii_request* request : group.requests) {
    team->team->wait_to_end(request->request);
    first.add(finish(request));
  }
  return first.tell();
}

}  // extern "C"
