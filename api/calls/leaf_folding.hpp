// SPDX-License-Identifier: Apache-2.0
// A rank folds the leaves that it has: each of its subtrees becomes one operand of the call's plan.
#pragma once

#include "api/calls/arena_copies.hpp"
#include "api/calls/request.hpp"

namespace torii {

/// Throws Error{invalid_argument} for a distance of the leaves in `input` that is shorter than a leaf, or too long.
void check_leaf_stride(const LeafSource& source, const CallPlan& call_plan, int rank);

/// Folds the leaves of a request whose call has some, or has them written by the caller's function and folds them as
/// they come. The operands are in memory of `copies`, unless the plan can take the caller's input as it is. Throws
/// Error{no_resource}, and Error{aborted} with the function's number if a leaf could not be written.
void fold_leaves(Request& request, ArenaCopies& copies, int rank);

}  // namespace torii
