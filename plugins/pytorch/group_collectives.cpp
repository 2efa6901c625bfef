// SPDX-License-Identifier: Apache-2.0
// The collectives of a group, one line each.
#include "plugins/pytorch/issue.hpp"
#include "plugins/pytorch/sparse.hpp"

namespace torii_torch {

WorkPointer Group::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  return issue(options, [&] { return make_broadcast(place(), tensors, options); });
}

WorkPointer Group::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  if (tensors.size() == 1 && tensors.front().is_sparse()) {
    return issue(options, [&] { return reduce_sparse(*team_, tensors.front(), options); });
  }
  return issue(options, [&] {
    only_tensor(tensors);
    return make_allreduce(tensors, options);
  });
}

WorkPointer Group::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  return issue(options, [&] {
    if (tensors.empty()) throw std::invalid_argument("requires non-empty tensor list");
    Operation made = make_allreduce(tensors, options);
    made.type = c10d::OpType::ALLREDUCE_COALESCED;
    return made;
  });
}

WorkPointer Group::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  return issue(options, [&] { return make_reduce(place(), tensors, options); });
}

WorkPointer Group::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  return issue(options, [&] {
    only_tensor(inputs);
    return make_allgather(place(), outputs, inputs, options);
  });
}

WorkPointer Group::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  return issue(options, [&] { return make_allgather_base(place(), {output}, {input}, options); });
}

WorkPointer Group::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  return issue(options, [&] {
    // PyTorch's lists go by ranks first: outputs[rank][i].
    TensorLists lists(inputs.size());
    for (const Tensors& of_rank : outputs) {
      if (of_rank.size() != inputs.size()) {
        throw std::invalid_argument("invalid output size: " + std::to_string(of_rank.size()) + " tensors where " +
                                    std::to_string(inputs.size()) + " are needed");
      }
      for (size_t i = 0; i < inputs.size(); ++i) lists[i].push_back(of_rank[i]);
    }
    Operation made = make_allgather(place(), lists, inputs, options);
    made.type = c10d::OpType::ALLGATHER_COALESCED;
    return made;
  });
}

WorkPointer Group::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  return issue(options, [&] { return make_gather(place(), outputs, inputs, options); });
}

WorkPointer Group::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) {
  return issue(options, [&] { return make_scatter(place(), outputs, inputs, options); });
}

WorkPointer Group::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) {
  return issue(options, [&] { return make_reduce_scatter(place(), outputs, inputs, options); });
}

WorkPointer Group::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                        const c10d::ReduceScatterOptions& options) {
  return issue(options, [&] { return make_reduce_scatter_base(place(), {output}, {input}, options); });
}

WorkPointer Group::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                                 std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) {
  return issue(options,
               [&] { return make_alltoall_base(place(), output, input, output_splits, input_splits, options); });
}

WorkPointer Group::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  return issue(options, [&] { return make_alltoall(place(), outputs, inputs, options); });
}

WorkPointer Group::barrier(const c10d::BarrierOptions& options) {
  return issue(options, [&] { return make_barrier(options); });
}

#if TORCH_VERSION_MAJOR >= 2
WorkPointer Group::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
  return issue(options, [&] { return reduce_sparse(*team_, tensors.front(), options); });
}

WorkPointer Group::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                   const c10d::AllgatherOptions& options) {
  return issue(options, [&] { return make_allgather_base(place(), outputs, inputs, options); });
}

WorkPointer Group::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                   const c10d::ReduceScatterOptions& options) {
  return issue(options, [&] { return make_reduce_scatter_base(place(), outputs, inputs, options); });
}
#endif

}  // namespace torii_torch
