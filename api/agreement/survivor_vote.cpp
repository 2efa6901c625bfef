// SPDX-License-Identifier: Apache-2.0
// The error of a rank without a place among the survivors.
#include "api/agreement/survivor_vote.hpp"

#include "runtime/base/status.hpp"

namespace torii {

void throw_left_out(int rank) {
  throw Error(Status::peer_lost, "the other members have lost or left out this rank, and go on without it", rank);
}

}  // namespace torii
