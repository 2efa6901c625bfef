// SPDX-License-Identifier: Apache-2.0
// Operations on vectors: broadcast, allreduce, reduce, and the barrier.
#include "plugins/pytorch/operations.hpp"

#include "plugins/pytorch/packing.hpp"

namespace torii_torch {
namespace {

void set_vector(torii_call& call, const at::Tensor& tensor) {
  call.input = call.result = address(tensor);
  call.count = static_cast<size_t>(tensor.numel());
}

}  // namespace

Operation make_broadcast(Place place, const Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::Tensor& tensor = only_tensor(tensors);
  const int root = checked_root(options.rootRank, place.ranks);
  if (options.rootTensor != 0)
    throw std::invalid_argument("invalid root tensor: " + std::to_string(options.rootTensor));
  Operation made{.type = c10d::OpType::BROADCAST, .title = "torii:broadcast", .inputs = tensors, .results = tensors};
  torii_call call = new_call(TORII_BROADCAST, options.timeout);
  const bool is_root = place.rank == root;
  set_vector(call, is_root ? packed_input(made, tensor) : packed_output(made, tensor, false));
  const Elements elements = elements_to_move(tensor);
  call.type = elements.type;
  call.count *= elements.per_element;
  call.root = root;
  made.calls.push_back(call);
  return made;
}

Operation make_allreduce(const Tensors& tensors, const c10d::AllreduceOptions& options) {
  Operation made{.type = c10d::OpType::ALLREDUCE, .title = "torii:all_reduce", .inputs = tensors, .results = tensors};
  for (const at::Tensor& tensor : tensors) check_tensor(tensor);
  for (size_t first = 0; first < tensors.size();) {
    const size_t length = length_of_run(tensors, first, 1);
    const auto begin = tensors.begin() + static_cast<ptrdiff_t>(first);
    torii_call call = new_call(TORII_ALLREDUCE, options.timeout);
    set_operation(made, call, options.reduceOp, *begin);
    set_vector(call, length == 1 ? packed_output(made, *begin, true)
                                 : packed_vector(made, {begin, begin + static_cast<ptrdiff_t>(length)}));
    made.calls.push_back(call);
    first += length;
  }
  return made;
}

Operation make_reduce(Place place, const Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::Tensor& tensor = only_tensor(tensors);
  Operation made{.type = c10d::OpType::REDUCE, .title = "torii:reduce", .inputs = tensors, .results = tensors};
  torii_call call = new_call(TORII_REDUCE, options.timeout);
  set_operation(made, call, options.reduceOp, tensor);
  call.root = checked_root(options.rootRank, place.ranks);
  if (options.rootTensor != 0)
    throw std::invalid_argument("invalid root tensor: " + std::to_string(options.rootTensor));
  const bool is_root = place.rank == call.root;
  const at::Tensor memory = is_root ? packed_output(made, tensor, true) : packed_input(made, tensor);
  set_vector(call, memory);
  if (!is_root) call.result = nullptr;
  made.calls.push_back(call);
  return made;
}

Operation make_barrier(const c10d::BarrierOptions& options) {
  Operation made{.type = c10d::OpType::BARRIER, .title = "torii:barrier"};
  made.calls.push_back(new_call(TORII_BARRIER, options.timeout));
  return made;
}

}  // namespace torii_torch
