// SPDX-License-Identifier: Apache-2.0
// The scan and exscan of recursive_doubling.
#pragma once

#include "collectives/building/algorithm.hpp"

namespace torii {

/// The plan of `rank` for a scan or exscan on any number of ranks.
Plan prefix_doubling_plan(const PlanRequest& request, int rank);
/// The result of `rank`: the canonical expression of the ranks before it. kNoExpression for rank 0 of an exscan.
ExpressionId prefix_doubling_order(const PlanRequest& request, int rank, ExpressionPool& pool);

}  // namespace torii
