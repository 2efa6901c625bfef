// SPDX-License-Identifier: Apache-2.0
// The members of a team: nodes, memory, names in messages.
#include "api/agreement/membership.hpp"

#include <algorithm>
#include <utility>

#include "api/agreement/member_names.hpp"

namespace torii {

Membership::Membership(Context& context, std::vector<Member> members, std::int64_t timeout_ns)
    : context_(context),
      members_(std::move(members)),
      rank_(member_of(context.rank())),
      engines_closed_before_(context.transport().closed_engines()),
      own_control_(&control(rank_)),
      wait_mode_(context.settings().wait),
      timeout_ns_(timeout_ns) {
  for (int member = 0; member < ranks(); ++member) several_nodes_ |= is_distant(member);
}

int Membership::member_of(int context_rank) const noexcept {
  const auto at = std::find_if(members_.begin(), members_.end(),
                               [=](const Member& member) { return member.context_rank == context_rank; });
  return at == members_.end() ? -1 : static_cast<int>(at - members_.begin());
}

bool Membership::is_distant(int member) const noexcept {
  return transport().node(at(member).context_rank) != transport().node(context_.rank());
}

TeamControl& Membership::control(int member) const noexcept {
  const Member& of = at(member);
  return *reinterpret_cast<TeamControl*>(transport().mapped(of.context_rank, of.memory_offset));
}

std::string Membership::text(int member) const { return member_text(member, host(member)); }

std::string Membership::text(const std::vector<int>& members) const {
  MemberNames names;
  for (const int member : members) names.add(member, host(member));
  return names.text();
}

}  // namespace torii
