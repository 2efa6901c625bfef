// SPDX-License-Identifier: Apache-2.0
// Whether the orders of a plan set's pairwise exchanges fit each other.
#pragma once

#include <span>

#include "collectives/proof/verify_steps.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// Whether all plans have a pairwise exchange, all none (false), or some (a fault).
bool have_exchanges(std::span<const Plan> plans, verification::Faults& faults);

/// Checks what pools rely on: all ranks follow equal orders, in which every rank meets every other one once each way
/// and both ends of a transfer agree on its number; something may be in flight; and who sends and takes is what the
/// collective asks for. Then no in-flight sets deadlock, however small: of the transfers that are not done take one of
/// the lowest number; both its ends have drawn it, since all before it are done, and it waits for nothing but these
/// two.
void check_orders(const PlanRequest& request, std::span<const Plan> plans, verification::Faults& faults);

}  // namespace torii
