// SPDX-License-Identifier: Apache-2.0
// The choice between the two kinds of agreement.
#include "api/agreement/team_agreement.hpp"

#include "api/agreement/network_agreement.hpp"
#include "api/agreement/node_agreement.hpp"

namespace torii {

std::unique_ptr<TeamAgreement> make_team_agreement(const Membership& members) {
  if (members.several_nodes()) return std::make_unique<NetworkAgreement>(members);
  return std::make_unique<NodeAgreement>(members);
}

}  // namespace torii
