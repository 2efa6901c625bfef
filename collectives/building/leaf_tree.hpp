// SPDX-License-Identifier: Apache-2.0
// The binomial tree of the subtrees of leaves: for leaves in any intervals what binomial is for ranks.
#pragma once

#include "runtime/plan/plan.hpp"

namespace torii {

/// The plan of `rank` for a reduce or allreduce of a request with leaves.
///
///   6 leaves, intervals [0,3) [3,6)       subtrees: 0-1, 2 on rank 0; 3, 4-5 on rank 1
///
///   0-1           2 + 3 at rank 0, which has the lower leaf; rank 1 sends leaf 3, and 4-5 by itself
///    | \          rank 0: (0-1 op (2 op 3)) op 4-5
///    2  4-5
///    |
///    3            each line between two ranks is a stream, others lead through slots of one rank
///
/// Up: the rank of a subtree combines its own operand with the values of the children, in order, and sends the value to
/// the parent's rank. Down: from the rank of leaf 0 along a binomial tree of ranks. A reduce ends at the rank of leaf
/// 0, which delivers the result to another root.
/// Cost: as binomial; a rank sends each of its operands at most once, and only where it is combined elsewhere.
Plan leaf_tree_plan(const PlanRequest& request, int rank);

}  // namespace torii
