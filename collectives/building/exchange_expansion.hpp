// SPDX-License-Identifier: Apache-2.0
// Pairwise exchanges written out as flows, for the verifier and the drawer: all that the executor may do, without the
// bound on transfers in flight.
#pragma once

#include <span>
#include <vector>

#include "runtime/plan/plan.hpp"

namespace torii {

/// `plans` with every transfer of a pairwise exchange as two lanes of one flow, the sender's and the receiver's, over a
/// stream of this delivery. Plans without a pairwise exchange do not change. Transfers are separate lanes because the
/// executor moves any transfer that can move: a proof for lanes in any order holds for every in-flight set.
std::vector<Plan> expand_exchanges(std::span<const Plan> plans, Delivery delivery);

}  // namespace torii
