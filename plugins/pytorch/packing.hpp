// SPDX-License-Identifier: Apache-2.0
// Memory that torii can read and write in one stretch, for tensors that are none.
#pragma once

#include <torii/torii.h>

#include <chrono>
#include <vector>

#include "plugins/pytorch/elements.hpp"
#include "plugins/pytorch/work.hpp"

namespace torii_torch {

/// A call of torii with a deadline of its own, if the options have one.
torii_call new_call(torii_collective collective, std::chrono::milliseconds timeout);
/// Throws std::invalid_argument unless the group has this rank.
int checked_root(int64_t root, int ranks);

/// The tensor, or a contiguous copy that lives as long as the operation.
at::Tensor packed_input(Operation& operation, const at::Tensor& tensor);
/// The tensor, or contiguous memory that is copied into it at the end; with its contents if `is_input` too.
at::Tensor packed_output(Operation& operation, const at::Tensor& tensor, bool is_input);
/// The type, the operation and, if it has one, the factor of a call that combines tensors like this one.
void set_operation(Operation& operation, torii_call& call, const c10d::ReduceOp& op, const at::Tensor& tensor);

/// The same for a list whose tensors torii sees one after the other.
at::Tensor packed_inputs(Operation& operation, const std::vector<at::Tensor>& tensors);
at::Tensor packed_outputs(Operation& operation, const std::vector<at::Tensor>& tensors);
/// Tensors that are input and result, as one vector: in place if they are one after the other.
at::Tensor packed_vector(Operation& operation, const std::vector<at::Tensor>& tensors);
/// The number of tensors from `first` on travel as one vector: short ones of one type. Equal on all ranks, since it
/// depends on types and lengths only. `copies` of each travel.
std::size_t length_of_run(const std::vector<at::Tensor>& tensors, std::size_t first, int copies);

/// True if blocks like this one travel from and to their own addresses, by calls with unequal blocks, which must be the
/// same on all ranks. Packing short ones is faster.
bool has_own_address(const at::Tensor& block);
/// Give a call with unequal blocks the tensors of a list, each where it is in memory if it is contiguous. Inputs that
/// overlap results are copied, but for input `own`, which may be the only result.
void set_result_blocks(Operation& operation, torii_call& call, const std::vector<at::Tensor>& tensors);
void set_input_blocks(Operation& operation, torii_call& call, const std::vector<at::Tensor>& tensors,
                      const std::vector<at::Tensor>& results, int own = -1);

/// A copy of the input if it overlaps the output anywhere but at `in_place`, where torii takes both as one.
at::Tensor apart(Operation& operation, const at::Tensor& input, const at::Tensor& output, const void* in_place);
/// The same for a list of outputs; in place is output number `own`.
at::Tensor apart(Operation& operation, const at::Tensor& input, const std::vector<at::Tensor>& outputs, int own);
/// The address of element `index`, counted in elements of the tensor.
void* address(const at::Tensor& tensor, int64_t index = 0);

}  // namespace torii_torch
