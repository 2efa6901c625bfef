// SPDX-License-Identifier: Apache-2.0
// The choice between the two kinds of agreement, and the errors of both.
#include "api/agreement/team_agreement.hpp"

#include "api/agreement/network_agreement.hpp"
#include "api/agreement/node_agreement.hpp"

namespace torii {

std::unique_ptr<TeamAgreement> make_team_agreement(const Membership& members) {
  if (members.several_nodes()) return std::make_unique<NetworkAgreement>(members);
  return std::make_unique<NodeAgreement>(members);
}

void throw_left_out(int rank) {
  throw Error(Status::peer_lost, "the other members have lost or left out this rank, and go on without it", rank);
}

}  // namespace torii
