// SPDX-License-Identifier: Apache-2.0
// PyTorch's element types and operations as torii's, and the checks of tensors.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <vector>

#include "plugins/pytorch/torch_version.hpp"

namespace torii_torch {

/// The elements of a tensor as torii moves them.
struct Elements {
  torii_type type = TORII_U8;
  std::size_t per_element = 1;  ///< how many of `type` make one element of the tensor
};

/// For calls that move data; every dtype has an answer.
Elements elements_to_move(const at::Tensor& tensor);
/// For calls that combine data. Throws std::invalid_argument if torii does not combine the dtype.
torii_type type_to_combine(const at::Tensor& tensor);
/// torii's operation. Throws std::invalid_argument for those that it has not.
torii_op op_of(const c10d::ReduceOp& op, const at::Tensor& tensor);
/// One element of the tensor's type, by which PREMUL_SUM multiplies this rank's values. Throws std::invalid_argument if
/// the operation has no such factor.
at::Tensor factor_of(const c10d::ReduceOp& op, const at::Tensor& tensor);

/// Throws std::invalid_argument unless the tensor is dense and in the memory of the CPU.
void check_tensor(const at::Tensor& tensor);
/// The tensor of a list that must have one. Throws std::invalid_argument.
const at::Tensor& only_tensor(const std::vector<at::Tensor>& tensors);
/// Throws std::invalid_argument unless the list has `count` tensors that are like `model`.
void check_list(const std::vector<at::Tensor>& tensors, int count, const at::Tensor& model, bool sizes = true);
/// The list of a list of lists that must have one. Throws std::invalid_argument.
const std::vector<at::Tensor>& only_list(const std::vector<std::vector<at::Tensor>>& lists);
/// Throws std::invalid_argument unless both have the same dtype and, if `sizes`, the same number of elements.
void check_alike(const at::Tensor& tensor, const at::Tensor& model, bool sizes = true);

}  // namespace torii_torch
