// SPDX-License-Identifier: Apache-2.0
// The part of multilane that carries whole vectors: broadcast, reduce and allreduce between sites.
#pragma once

#include "runtime/plan/expression.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// At most so many streams go from a rank to another one.
inline constexpr int kLanePairStreams = 16;
/// Lanes of a broadcast, reduce or allreduce. Their number is the most that the request's tuning asks for to any site,
/// and never more than the largest site has ranks, nor than kLanePairStreams allows: in a small site few heads share
/// all trees. The number for the root's own site counts too: one number serves all sites.
int tree_lanes(const PlanRequest& request);

/// The plan of `rank`; the topology is a tree of links with at least two sites.
Plan lane_trees_plan(const PlanRequest& request, int rank);

/// The order of the elements of share `block`: first the ranks of a site under its head, in the order of ranks. Then
/// follow the values that the heads of the other sites have combined.
ExpressionId lane_trees_order(const PlanRequest& request, int block, ExpressionPool& pool);

}  // namespace torii
