// SPDX-License-Identifier: Apache-2.0
// Pairwise exchanges written out as flows, for the verifier and the drawer: what the executor may do, without the bound
// on what is under way.
#pragma once

#include <span>
#include <vector>

#include "runtime/plan/plan.hpp"

namespace torii {

/// `plans` with every transfer of a pairwise exchange as two lanes of one flow, of its sender and its receiver, over a
/// stream of this delivery; plans without a pairwise exchange as they are. Transfers are lanes of their own because the
/// executor lets whichever can move do so: what is proved for lanes in any order holds for every pool.
std::vector<Plan> expand_exchanges(std::span<const Plan> plans, Delivery delivery);

}  // namespace torii
