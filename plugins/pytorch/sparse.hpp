// SPDX-License-Identifier: Apache-2.0
// The sum of sparse tensors over the ranks.
#pragma once

#include "plugins/pytorch/team.hpp"
#include "plugins/pytorch/work.hpp"

namespace torii_torch {

/// Gathers the coordinates and values of all ranks in this thread, before it returns. Three collectives do this, and
/// each needs the result of the one before. The operation that it returns has no calls left and stores the sum into
/// `tensor` when it ends. Values with equal coordinates are summed in the order of ranks. Throws if a collective fails.
Operation reduce_sparse(const Team& team, const at::Tensor& tensor, const c10d::AllreduceOptions& options);

}  // namespace torii_torch
