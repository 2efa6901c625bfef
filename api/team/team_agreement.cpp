// SPDX-License-Identifier: Apache-2.0
// The choice between the two kinds of agreement, and the errors of both.
#include "api/team/team_agreement.hpp"

#include "api/team/network_agreement.hpp"
#include "api/team/node_agreement.hpp"

namespace torii {

std::unique_ptr<TeamAgreement> make_team_agreement(const Membership& members) {
  if (members.several_nodes()) return std::make_unique<NetworkAgreement>(members);
  return std::make_unique<NodeAgreement>(members);
}

void throw_missing(int member) {
  throw Error(Status::timeout, "rank " + std::to_string(member) + " lives but does not make the survivors' team",
              member);
}

void throw_undecided() { throw Error(Status::timeout, "a rank died while it chose the survivors"); }

void throw_refusal(int member, std::int32_t status, const char* text) {
  throw Error(static_cast<Status>(status), "rank " + std::to_string(member) + ": " + text, member);
}

}  // namespace torii
