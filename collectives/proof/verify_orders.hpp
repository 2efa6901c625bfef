// SPDX-License-Identifier: Apache-2.0
// Whether the orders of a plan set's pairwise exchanges fit each other.
#pragma once

#include <span>

#include "collectives/proof/verify_steps.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// Whether all plans have a pairwise exchange, all none (false), or some (a fault).
bool have_exchanges(std::span<const Plan> plans, verification::Faults& faults);

/// Checks the facts on which in-flight sets rely. All ranks follow equal orders, in which every rank meets every other
/// one once each way and both ends of a transfer agree on its number. At least one transfer may be in flight. The ranks
/// that send and take are those of the collective. Then no in-flight sets deadlock, however small. Proof: of the
/// transfers that are not done take one of the lowest number. Both its ends have started it, since all before it are
/// done, and it waits for these two only.
void check_orders(const PlanRequest& request, std::span<const Plan> plans, verification::Faults& faults);

}  // namespace torii
