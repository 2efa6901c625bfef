// SPDX-License-Identifier: Apache-2.0
// The collectives of a process group as calls of torii.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/pytorch/torch_version.hpp"
#include "plugins/pytorch/work.hpp"

namespace torii_torch {

using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;

/// This rank and the number of ranks.
struct Place {
  int rank;
  int ranks;
};

// Each checks the tensors and throws std::invalid_argument if they do not fit. Tensors that are not contiguous are
// packed, as are lists of short tensors that are not one after the other in memory. Results are copied back at the end.
Operation make_broadcast(Place place, const Tensors& tensors, const c10d::BroadcastOptions& options);
Operation make_allreduce(const Tensors& tensors, const c10d::AllreduceOptions& options);
Operation make_reduce(Place place, const Tensors& tensors, const c10d::ReduceOptions& options);
Operation make_barrier(const c10d::BarrierOptions& options);
/// `outputs[i]` has one tensor of each rank for `inputs[i]`.
Operation make_allgather(Place place, const TensorLists& outputs, const Tensors& inputs,
                         const c10d::AllgatherOptions& options);
/// The outputs have the blocks of all ranks in one tensor.
Operation make_allgather_base(Place place, const Tensors& outputs, const Tensors& inputs,
                              const c10d::AllgatherOptions& options);
Operation make_gather(Place place, const TensorLists& outputs, const Tensors& inputs,
                      const c10d::GatherOptions& options);
Operation make_scatter(Place place, const Tensors& outputs, const TensorLists& inputs,
                       const c10d::ScatterOptions& options);
Operation make_reduce_scatter(Place place, const Tensors& outputs, const TensorLists& inputs,
                              const c10d::ReduceScatterOptions& options);
Operation make_reduce_scatter_base(Place place, const Tensors& outputs, const Tensors& inputs,
                                   const c10d::ReduceScatterOptions& options);
/// Splits are numbers of rows for each rank; empty: equal ones.
Operation make_alltoall_base(Place place, const at::Tensor& output, const at::Tensor& input,
                             const std::vector<int64_t>& output_splits, const std::vector<int64_t>& input_splits,
                             const c10d::AllToAllOptions& options);
Operation make_alltoall(Place place, const Tensors& outputs, const Tensors& inputs,
                        const c10d::AllToAllOptions& options);

}  // namespace torii_torch
