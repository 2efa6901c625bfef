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
/// The same for a list whose tensors torii sees one after the other.
at::Tensor packed_inputs(Operation& operation, const std::vector<at::Tensor>& tensors);
at::Tensor packed_outputs(Operation& operation, const std::vector<at::Tensor>& tensors);
/// A copy of the input if it overlaps the output anywhere but at `in_place`, where torii takes both as one.
at::Tensor apart(Operation& operation, const at::Tensor& input, const at::Tensor& output, const void* in_place);
/// The address of element `index`, counted in elements of the tensor.
void* address(const at::Tensor& tensor, int64_t index = 0);

}  // namespace torii_torch
