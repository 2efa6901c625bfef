// SPDX-License-Identifier: Apache-2.0
// Copies into and out of stretches of memory.
#include "plugins/pytorch/packing.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
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

/// Short tensors of a coalesced operation travel as one vector. These are the limits of torii's own groups of calls,
/// which end by waiting. Such groups do not fit a rank that starts the operation and waits later, while the other ranks
/// wait.
constexpr int64_t kShortBytes = 8 << 10;
constexpr int64_t kRunBytes = 256 << 10;
/// Below this length copies cost less than calls with unequal blocks.
constexpr int64_t kOwnAddressBytes = 64 << 10;

int64_t bytes_of(const at::Tensor& tensor) { return tensor.numel() * static_cast<int64_t>(tensor.element_size()); }

/// True if the elements are in memory one after the other as they are: PyTorch conjugates and negates lazily.
bool is_plain(const at::Tensor& tensor) { return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg(); }

/// A copy for which that is so, or the tensor.
at::Tensor plain(const at::Tensor& tensor) { return tensor.resolve_conj().resolve_neg().contiguous(); }

/// Memory from `begin` to before `end`.
struct Range {
  std::uintptr_t begin, end;
};

Range range_of(const at::Tensor& tensor) {
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data_ptr());
  return {begin, begin + static_cast<std::uintptr_t>(bytes_of(tensor))};
}

bool overlap(Range one, Range other) { return one.begin < other.end && other.begin < one.end; }

/// True if some of the contiguous tensors share memory.
bool overlap_each_other(const std::vector<at::Tensor>& tensors) {
  std::vector<Range> ranges;
  for (const at::Tensor& tensor : tensors) ranges.push_back(range_of(tensor));
  std::sort(ranges.begin(), ranges.end(), [](Range one, Range other) { return one.begin < other.begin; });
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (overlap(ranges[i - 1], ranges[i])) return true;
  }
  return false;
}

/// True if the tensors are one after the other in memory.
bool is_one_stretch(const std::vector<at::Tensor>& tensors) {
  const auto* next = static_cast<const char*>(tensors.front().data_ptr());
  const at::Storage& storage = tensors.front().storage();
  return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
    const bool fits =
        is_plain(tensor) && tensor.storage().is_alias_of(storage) && (tensor.numel() == 0 || tensor.data_ptr() == next);
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

/// Calls `move(part of the vector, tensor)` for each tensor, whose elements are one after the other in the vector.
/// PyTorch's own functions take microseconds for a tensor, as long as a short call, so most parts are bare addresses.
template <typename Bytes, typename Elements>
void for_each_part(const at::Tensor& vector, const std::vector<at::Tensor>& tensors, Bytes move_bytes,
                   Elements move_elements) {
  int64_t begin = 0;
  for (const at::Tensor& tensor : tensors) {
    if (is_plain(tensor) && tensor.numel() > 0) {
      move_bytes(address(vector, begin), tensor.data_ptr(), static_cast<size_t>(bytes_of(tensor)));
    } else if (tensor.numel() > 0) {
      move_elements(vector.narrow(0, begin, tensor.numel()).view(tensor.sizes()), tensor);
    }
    begin += tensor.numel();
  }
}

at::Tensor joined(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  at::Tensor made = at::empty({total_elements(tensors)}, tensors.front().options());
  for_each_part(
      made, tensors, [](void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); },
      [](const at::Tensor& to, const at::Tensor& from) { to.copy_(from); });
  return made;
}

/// Copies the parts of a vector into the tensors.
void copy_apart(const at::Tensor& vector, const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  for_each_part(
      vector, tensors, [](const void* from, void* to, size_t bytes) { std::memcpy(to, from, bytes); },
      [](const at::Tensor& from, const at::Tensor& to) { to.copy_(from); });
}

}  // namespace

torii_call new_call(torii_collective collective, std::chrono::milliseconds timeout) {
  torii_call call = {};
  call.size = sizeof(call);
  call.collective = collective;
  timeout = clamped(timeout);
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
  if (is_plain(tensor)) return tensor;
  const at::NoGradGuard no_grad;
  return operation.packed.emplace_back(plain(tensor));
}

at::Tensor packed_output(Operation& operation, const at::Tensor& tensor, bool is_input) {
  if (is_plain(tensor)) return tensor;
  const at::NoGradGuard no_grad;
  at::Tensor made = is_input ? plain(tensor) : at::empty(tensor.sizes(), tensor.options());
  operation.packed.push_back(made);
  finish_with(operation, [tensor, made] {
    const at::NoGradGuard no_gradient;
    tensor.copy_(made);
  });
  return made;
}

void set_operation(Operation& operation, torii_call& call, const c10d::ReduceOp& op, const at::Tensor& tensor) {
  call.type = type_to_combine(tensor);
  call.op = op_of(op, tensor);
  if (call.op == TORII_PREMUL_SUM) call.factor = address(operation.packed.emplace_back(factor_of(op, tensor)));
}

at::Tensor packed_inputs(Operation& operation, const std::vector<at::Tensor>& tensors) {
  if (is_one_stretch(tensors)) return stretch(tensors);
  return operation.packed.emplace_back(joined(tensors));
}

at::Tensor packed_outputs(Operation& operation, const std::vector<at::Tensor>& tensors) {
  if (is_one_stretch(tensors)) return stretch(tensors);
  at::Tensor made = at::empty({total_elements(tensors)}, tensors.front().options());
  operation.packed.push_back(made);
  finish_with(operation, [tensors, made] { copy_apart(made, tensors); });
  return made;
}

at::Tensor packed_vector(Operation& operation, const std::vector<at::Tensor>& tensors) {
  if (is_one_stretch(tensors)) return stretch(tensors);
  at::Tensor made = operation.packed.emplace_back(joined(tensors));
  finish_with(operation, [tensors, made] { copy_apart(made, tensors); });
  return made;
}

size_t length_of_run(const std::vector<at::Tensor>& tensors, size_t first, int copies) {
  int64_t bytes = 0;
  size_t end = first;
  for (; end < tensors.size(); ++end) {
    const int64_t more = bytes_of(tensors[end]) * copies;
    bytes += more;
    const bool joins =
        more <= kShortBytes && bytes <= kRunBytes && tensors[end].scalar_type() == tensors[first].scalar_type();
    if (!joins) break;
  }
  return std::max<size_t>(end - first, 1);
}

bool has_own_address(const at::Tensor& block) { return bytes_of(block) >= kOwnAddressBytes; }

void set_result_blocks(Operation& operation, torii_call& call, const std::vector<at::Tensor>& tensors) {
  call.unequal = 1;
  if (call.result_counts == nullptr) {
    call.result_counts = operation.counts.emplace_back(tensors.size(), call.count).data();
  }
  if (is_one_stretch(tensors) || overlap_each_other(tensors)) {
    call.result = address(packed_outputs(operation, tensors));
    return;
  }
  std::vector<void*>& blocks = operation.blocks.emplace_back();
  for (const at::Tensor& tensor : tensors) blocks.push_back(address(packed_output(operation, tensor, false)));
  call.result_blocks = blocks.data();
}

void set_input_blocks(Operation& operation, torii_call& call, const std::vector<at::Tensor>& tensors,
                      const std::vector<at::Tensor>& results, int own) {
  call.unequal = 1;
  std::vector<void*>& blocks = operation.blocks.emplace_back();
  for (const at::Tensor& tensor : tensors) {
    const bool in_place = static_cast<int>(blocks.size()) == own;
    blocks.push_back(address(apart(operation, packed_input(operation, tensor), results, in_place ? 0 : -1)));
  }
  call.input_blocks = blocks.data();
}

at::Tensor apart(Operation& operation, const at::Tensor& input, const at::Tensor& output, const void* in_place) {
  if (!overlap(range_of(input), range_of(output)) || input.data_ptr() == in_place) return input;
  const at::NoGradGuard no_grad;
  return operation.packed.emplace_back(input.clone());
}

at::Tensor apart(Operation& operation, const at::Tensor& input, const std::vector<at::Tensor>& outputs, int own) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool in_place = static_cast<int>(i) == own && input.data_ptr() == outputs[i].data_ptr();
    if (in_place || !overlap(range_of(input), range_of(outputs[i]))) continue;
    const at::NoGradGuard no_grad;
    return operation.packed.emplace_back(input.clone());
  }
  return input;
}

void* address(const at::Tensor& tensor, int64_t index) {
  return static_cast<char*>(tensor.data_ptr()) + index * static_cast<int64_t>(tensor.element_size());
}

}  // namespace torii_torch
