// SPDX-License-Identifier: Apache-2.0
// Copies into and out of stretches of memory.
#include "plugins/pytorch/packing.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace torii_torch {
namespace {

void finish_with(Operation& operation, std::function<void()> more) {
  if (!operation.finish) {
    operation.finish = std::move(more);
    return;
  }
  operation.finish = [first = std::move(operation.finish), more = std::move(more)] {
    first();
    more();
  };
}

/// Whether the tensors are one after the other in memory. Lists that are not could go to torii as lists of addresses
/// (torii/block_lists.h) instead of copies. All ranks must then take calls of unequal blocks.
bool is_one_stretch(const std::vector<at::Tensor>& tensors) {
  const auto* next = static_cast<const char*>(tensors.front().data_ptr());
  const at::Storage& storage = tensors.front().storage();
  return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
    const bool fits = tensor.is_contiguous() && tensor.storage().is_alias_of(storage) &&
                      (tensor.numel() == 0 || tensor.data_ptr() == next);
    next += tensor.nbytes();
    return fits;
  });
}

int64_t total_elements(const std::vector<at::Tensor>& tensors) {
  int64_t total = 0;
  for (const at::Tensor& tensor : tensors) total += tensor.numel();
  return total;
}

at::Tensor stretch(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  return tensors.front().detach().as_strided({total_elements(tensors)}, {1});
}

}  // namespace

torii_call new_call(torii_collective collective, std::chrono::milliseconds timeout) {
  torii_call call = {};
  call.size = sizeof(call);
  call.collective = collective;
  if (timeout.count() > 0) call.timeout_seconds = std::chrono::duration<double>(timeout).count();
  return call;
}

int checked_root(int64_t root, int ranks) {
  if (root < 0 || root >= ranks) {
    throw std::invalid_argument("invalid root rank: " + std::to_string(root) + "; the group has " +
                                std::to_string(ranks) + " ranks");
  }
  return static_cast<int>(root);
}

at::Tensor packed_input(Operation& operation, const at::Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  const at::NoGradGuard no_grad;
  return operation.packed.emplace_back(tensor.contiguous());
}

at::Tensor packed_output(Operation& operation, const at::Tensor& tensor, bool is_input) {
  if (tensor.is_contiguous()) return tensor;
  const at::NoGradGuard no_grad;
  at::Tensor made = is_input ? tensor.contiguous() : at::empty(tensor.sizes(), tensor.options());
  operation.packed.push_back(made);
  finish_with(operation, [tensor, made] {
    const at::NoGradGuard no_gradient;
    tensor.copy_(made);
  });
  return made;
}

at::Tensor packed_inputs(Operation& operation, const std::vector<at::Tensor>& tensors) {
  if (is_one_stretch(tensors)) return stretch(tensors);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> flat;
  flat.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape(-1));
  return operation.packed.emplace_back(at::cat(flat));
}

at::Tensor packed_outputs(Operation& operation, const std::vector<at::Tensor>& tensors) {
  if (is_one_stretch(tensors)) return stretch(tensors);
  at::Tensor made = at::empty({total_elements(tensors)}, tensors.front().options());
  operation.packed.push_back(made);
  finish_with(operation, [tensors, made] {
    const at::NoGradGuard no_gradient;
    int64_t begin = 0;
    for (const at::Tensor& tensor : tensors) {
      tensor.copy_(made.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
      begin += tensor.numel();
    }
  });
  return made;
}

at::Tensor apart(Operation& operation, const at::Tensor& input, const at::Tensor& output, const void* in_place) {
  const auto begin = reinterpret_cast<std::uintptr_t>(input.data_ptr());
  const auto output_begin = reinterpret_cast<std::uintptr_t>(output.data_ptr());
  const bool overlaps = begin < output_begin + output.nbytes() && output_begin < begin + input.nbytes();
  if (!overlaps || input.data_ptr() == in_place) return input;
  const at::NoGradGuard no_grad;
  return operation.packed.emplace_back(input.clone());
}

void* address(const at::Tensor& tensor, int64_t index) {
  return static_cast<char*>(tensor.data_ptr()) + index * static_cast<int64_t>(tensor.element_size());
}

}  // namespace torii_torch
