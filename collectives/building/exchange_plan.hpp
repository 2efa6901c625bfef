// SPDX-License-Identifier: Apache-2.0
// Plans of alltoall, scatter and gather: senders, receivers and the order of transfers.
#pragma once

#include <memory>

#include "runtime/plan/plan.hpp"

namespace torii {

/// The senders and receivers of an alltoall, scatter or gather; without an order.
PairwiseExchange exchange_ends(const PlanRequest& request);
/// Sets how many streams the busiest rank has.
void set_exchange_maxima(Plan& plan, const PairwiseExchange& exchange);

/// Rank u meets u + 1, u + 2, ...; one object for each number of ranks.
std::shared_ptr<const TransferOrder> rotation(int ranks);

/// A plan that is one pairwise exchange in this order, with the request's window in flight.
Plan exchange_plan(const PlanRequest& request, int rank, std::shared_ptr<const TransferOrder> order);

/// The plan of `direct`: for short blocks (one_shot) a message each, else a pairwise exchange by rotation.
Plan direct_plan(const PlanRequest& request, int rank);

}  // namespace torii
