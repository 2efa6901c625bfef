// SPDX-License-Identifier: Apache-2.0
// Operations on blocks, of which each rank has one.
#include <numeric>
#include <stdexcept>
#include <string>

#include "plugins/pytorch/operations.hpp"
#include "plugins/pytorch/packing.hpp"

namespace torii_torch {
namespace {

void check_blocks(const at::Tensor& whole, const at::Tensor& block, int ranks) {
  check_alike(whole, block, /*sizes=*/false);
  if (whole.numel() != block.numel() * ranks) {
    throw std::invalid_argument("invalid tensor size: " + std::to_string(whole.numel()) + " elements where " +
                                std::to_string(ranks) + " blocks of " + std::to_string(block.numel()) +
                                " elements are needed");
  }
}

void set_elements(torii_call& call, const at::Tensor& block) {
  const Elements elements = elements_to_move(block);
  call.type = elements.type;
  call.count = static_cast<size_t>(block.numel()) * elements.per_element;
}

void add_all_gather(Operation& made, Place place, const at::Tensor& result, const at::Tensor& input,
                    const c10d::AllgatherOptions& options) {
  torii_call call = new_call(TORII_ALL_GATHER, options.timeout);
  set_elements(call, input);
  const void* const own = address(result, place.rank * input.numel());
  call.input = address(apart(made, packed_input(made, input), result, own));
  call.result = address(result);
  made.calls.push_back(call);
}

/// Blocks of all ranks that travel from and to the tensors of a list.
void add_all_gather_list(Operation& made, Place place, const Tensors& results, const at::Tensor& input,
                         const c10d::AllgatherOptions& options) {
  torii_call call = new_call(TORII_ALL_GATHER, options.timeout);
  set_elements(call, input);
  call.input = address(apart(made, packed_input(made, input), results, place.rank));
  set_result_blocks(made, call, results);
  made.calls.push_back(call);
}

/// Short tensors of a coalesced operation: one call, whose result is copied to lists[i], which are those of inputs[i].
void add_packed_all_gather(Operation& made, Place place, const TensorLists& lists, const Tensors& inputs,
                           const c10d::AllgatherOptions& options) {
  const at::Tensor input = packed_inputs(made, inputs);
  Tensors by_ranks;
  for (size_t rank = 0; rank < static_cast<size_t>(place.ranks); ++rank) {
    for (const Tensors& list : lists) by_ranks.push_back(list[rank]);
  }
  add_all_gather(made, place, packed_outputs(made, by_ranks), input, options);
}

void add_reduce_scatter(Operation& made, Place place, const at::Tensor& output, const at::Tensor& input,
                        const c10d::ReduceScatterOptions& options) {
  torii_call call = new_call(TORII_REDUCE_SCATTER, options.timeout);
  set_operation(made, call, options.reduceOp, output);
  call.count = static_cast<size_t>(output.numel());
  const at::Tensor result = packed_output(made, output, false);
  // In place the result is the own block of the input, which then must be seen from the input's side.
  const bool is_own = address(input, place.rank * output.numel()) == result.data_ptr();
  call.input = address(is_own ? input : apart(made, input, result, nullptr));
  call.result = address(result);
  made.calls.push_back(call);
}

/// Elements that go to or come from each rank, by rows of the first dimension.
std::vector<size_t> counts_of(const at::Tensor& tensor, const std::vector<int64_t>& splits, int ranks,
                              size_t per_element) {
  const int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  const auto count = static_cast<size_t>(ranks);
  if (splits.empty()) {
    if (rows % ranks != 0) throw std::invalid_argument("Tensor's dim 0 does not divide equally across group size");
    return std::vector<size_t>(count, static_cast<size_t>(tensor.numel()) / count * per_element);
  }
  if (splits.size() != count) throw std::invalid_argument("Number of tensor splits not equal to group size");
  int64_t sum = 0;
  std::vector<size_t> made;
  for (const int64_t split : splits) {
    if (split < 0) throw std::invalid_argument("a split size is negative: " + std::to_string(split));
    sum += split;
    made.push_back(rows == 0 ? 0 : static_cast<size_t>(split * (tensor.numel() / rows)) * per_element);
  }
  if (sum != rows) throw std::invalid_argument("Split sizes doesn't match total dim 0 size");
  return made;
}

std::vector<size_t> counts_of(const Tensors& tensors, size_t per_element) {
  std::vector<size_t> made;
  for (const at::Tensor& tensor : tensors) made.push_back(static_cast<size_t>(tensor.numel()) * per_element);
  return made;
}

/// torii copies the counts when the call starts; until then the operation keeps them.
void set_counts(Operation& made, torii_call& call, std::vector<size_t> input_counts,
                std::vector<size_t> output_counts) {
  call.unequal = 1;
  call.input_counts = made.counts.emplace_back(std::move(input_counts)).data();
  call.result_counts = made.counts.emplace_back(std::move(output_counts)).data();
}

/// A gather or a scatter of such a block.
template <typename Options>
torii_call new_rooted_call(torii_collective collective, Place place, const at::Tensor& block, const Options& options) {
  torii_call call = new_call(collective, options.timeout);
  set_elements(call, block);
  call.root = checked_root(options.rootRank, place.ranks);
  call.unequal = has_own_address(block) ? 1 : 0;
  return call;
}

/// True if this rank is the root, whose list of blocks becomes `list`. Others have none.
bool set_root_list(Place place, const torii_call& call, const at::Tensor& block, const TensorLists& lists,
                   Tensors& list) {
  if (place.rank == call.root) {
    list = only_list(lists);
    check_list(list, place.ranks, block);
    return true;
  }
  if (!lists.empty()) {
    throw std::invalid_argument(std::string("requires empty ") +
                                (call.collective == TORII_GATHER ? "output" : "input") + " on non-root");
  }
  return false;
}

}  // namespace

Operation make_allgather(Place place, const TensorLists& outputs, const Tensors& inputs,
                         const c10d::AllgatherOptions& options) {
  if (inputs.empty()) throw std::invalid_argument("requires non-empty input tensor list");
  if (outputs.size() != inputs.size()) {
    throw std::invalid_argument("requires input/output tensor lists to have the same length");
  }
  Operation made{.type = c10d::OpType::ALLGATHER, .title = "torii:all_gather", .inputs = inputs};
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_tensor(inputs[i]);
    check_list(outputs[i], place.ranks, inputs[i]);
    made.results.insert(made.results.end(), outputs[i].begin(), outputs[i].end());
  }
  for (size_t first = 0; first < inputs.size();) {
    const size_t length = length_of_run(inputs, first, place.ranks);
    const auto begin = static_cast<ptrdiff_t>(first), end = static_cast<ptrdiff_t>(first + length);
    if (length > 1) {
      add_packed_all_gather(made, place, {outputs.begin() + begin, outputs.begin() + end},
                            {inputs.begin() + begin, inputs.begin() + end}, options);
    } else if (has_own_address(inputs[first])) {
      add_all_gather_list(made, place, outputs[first], inputs[first], options);
    } else {
      add_all_gather(made, place, packed_outputs(made, outputs[first]), inputs[first], options);
    }
    first += length;
  }
  return made;
}

Operation make_allgather_base(Place place, const Tensors& outputs, const Tensors& inputs,
                              const c10d::AllgatherOptions& options) {
  Operation made{
      .type = c10d::OpType::_ALLGATHER_BASE, .title = "torii:_all_gather_base", .inputs = inputs, .results = outputs};
  if (outputs.size() != inputs.size()) throw std::invalid_argument("requires as many outputs as inputs");
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_tensor(inputs[i]);
    check_blocks(outputs[i], inputs[i], place.ranks);
    add_all_gather(made, place, packed_output(made, outputs[i], false), inputs[i], options);
  }
  return made;
}

Operation make_gather(Place place, const TensorLists& outputs, const Tensors& inputs,
                      const c10d::GatherOptions& options) {
  const at::Tensor& block = only_tensor(inputs);
  Operation made{.type = c10d::OpType::GATHER, .title = "torii:gather", .inputs = inputs};
  torii_call call = new_rooted_call(TORII_GATHER, place, block, options);
  const at::Tensor input = packed_input(made, block);
  call.input = address(input);
  if (set_root_list(place, call, block, outputs, made.results)) {
    if (call.unequal != 0) {
      call.input = address(apart(made, input, made.results, place.rank));
      set_result_blocks(made, call, made.results);
    } else {
      const at::Tensor result = packed_outputs(made, made.results);
      call.input = address(apart(made, input, result, address(result, place.rank * block.numel())));
      call.result = address(result);
    }
  }
  made.calls.push_back(call);
  return made;
}

Operation make_scatter(Place place, const Tensors& outputs, const TensorLists& inputs,
                       const c10d::ScatterOptions& options) {
  const at::Tensor& block = only_tensor(outputs);
  Operation made{.type = c10d::OpType::SCATTER, .title = "torii:scatter", .results = outputs};
  torii_call call = new_rooted_call(TORII_SCATTER, place, block, options);
  const at::Tensor result = packed_output(made, block, false);
  call.result = address(result);
  if (set_root_list(place, call, block, inputs, made.inputs)) {
    if (call.unequal != 0) {
      set_input_blocks(made, call, made.inputs, {result}, place.rank);
    } else {
      const at::Tensor values = packed_inputs(made, made.inputs);
      const bool is_own = address(values, place.rank * block.numel()) == call.result;
      call.input = address(is_own ? values : apart(made, values, result, nullptr));
    }
  }
  made.calls.push_back(call);
  return made;
}

Operation make_reduce_scatter(Place place, const Tensors& outputs, const TensorLists& inputs,
                              const c10d::ReduceScatterOptions& options) {
  const at::Tensor& output = only_tensor(outputs);
  const Tensors& list = only_list(inputs);
  check_list(list, place.ranks, output, /*sizes=*/false);
  check_alike(list[static_cast<size_t>(place.rank)], output);
  Operation made{
      .type = c10d::OpType::REDUCE_SCATTER, .title = "torii:reduce_scatter", .inputs = list, .results = outputs};
  add_reduce_scatter(made, place, output, packed_inputs(made, list), options);
  const std::vector<size_t> counts = counts_of(list, 1);
  for (const size_t count : counts) {
    if (count == counts.front()) continue;
    made.calls.back().unequal = 1;
    made.calls.back().input_counts = made.counts.emplace_back(counts).data();
    break;
  }
  return made;
}

Operation make_reduce_scatter_base(Place place, const Tensors& outputs, const Tensors& inputs,
                                   const c10d::ReduceScatterOptions& options) {
  Operation made{.type = c10d::OpType::_REDUCE_SCATTER_BASE,
                 .title = "torii:_reduce_scatter_base",
                 .inputs = inputs,
                 .results = outputs};
  if (outputs.size() != inputs.size()) throw std::invalid_argument("requires as many outputs as inputs");
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_tensor(outputs[i]);
    check_blocks(inputs[i], outputs[i], place.ranks);
    add_reduce_scatter(made, place, outputs[i], packed_input(made, inputs[i]), options);
  }
  return made;
}

Operation make_alltoall_base(Place place, const at::Tensor& output, const at::Tensor& input,
                             const std::vector<int64_t>& output_splits, const std::vector<int64_t>& input_splits,
                             const c10d::AllToAllOptions& options) {
  check_tensor(input);
  check_alike(output, input, /*sizes=*/false);
  Operation made{
      .type = c10d::OpType::ALLTOALL_BASE, .title = "torii:all_to_all", .inputs = {input}, .results = {output}};
  torii_call call = new_call(TORII_ALLTOALL, options.timeout);
  const Elements elements = elements_to_move(input);
  call.type = elements.type;
  const at::Tensor result = packed_output(made, output, false);
  call.input = address(apart(made, packed_input(made, input), result, result.data_ptr()));
  call.result = address(result);
  made.calls.push_back(call);
  auto input_counts = counts_of(input, input_splits, place.ranks, elements.per_element);
  auto output_counts = counts_of(output, output_splits, place.ranks, elements.per_element);
  if (input_splits.empty() && output_splits.empty()) {
    check_alike(output, input);
    made.calls.back().count = input_counts.front();
  } else {
    if (made.calls.back().input == made.calls.back().result) {
      made.calls.back().input = address(made.packed.emplace_back(packed_input(made, input).clone()));
    }
    set_counts(made, made.calls.back(), std::move(input_counts), std::move(output_counts));
  }
  return made;
}

Operation make_alltoall(Place place, const Tensors& outputs, const Tensors& inputs,
                        const c10d::AllToAllOptions& options) {
  if (inputs.empty() || outputs.empty()) throw std::invalid_argument("requires non-empty tensor lists");
  check_list(inputs, place.ranks, inputs.front(), /*sizes=*/false);
  check_list(outputs, place.ranks, inputs.front(), /*sizes=*/false);
  Operation made{.type = c10d::OpType::ALLTOALL, .title = "torii:all_to_all", .inputs = inputs, .results = outputs};
  torii_call call = new_call(TORII_ALLTOALL, options.timeout);
  const Elements elements = elements_to_move(inputs.front());
  call.type = elements.type;
  set_counts(made, call, counts_of(inputs, elements.per_element), counts_of(outputs, elements.per_element));
  set_input_blocks(made, call, inputs, outputs);
  set_result_blocks(made, call, outputs);
  made.calls.push_back(call);
  return made;
}

}  // namespace torii_torch
