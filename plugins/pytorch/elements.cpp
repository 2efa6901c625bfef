// SPDX-License-Identifier: Apache-2.0
// The tables of types and operations.
#include "plugins/pytorch/elements.hpp"

#include <optional>
#include <stdexcept>
#include <string>

namespace torii_torch {
namespace {

std::optional<torii_type> type_of(at::ScalarType type) {
  switch (type) {
    case at::kChar:
      return TORII_I8;
    case at::kByte:
      return TORII_U8;
    case at::kShort:
      return TORII_I16;
    case at::kInt:
      return TORII_I32;
    case at::kLong:
      return TORII_I64;
    case at::kHalf:
      return TORII_F16;
    case at::kBFloat16:
      return TORII_BF16;
    case at::kFloat:
      return TORII_F32;
    case at::kDouble:
      return TORII_F64;
    case at::kComplexFloat:
      return TORII_CF32;
    case at::kComplexDouble:
      return TORII_CF64;
    case at::kBool:
      return TORII_BOOL;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
    case at::kFloat8_e4m3fn:
      return TORII_FLOAT8_E4M3;
    case at::kFloat8_e5m2:
      return TORII_FLOAT8_E5M2;
#endif
    default:
      return std::nullopt;
  }
}

[[noreturn]] void refuse(const std::string& text) { throw std::invalid_argument(text); }

}  // namespace

Elements elements_to_move(const at::Tensor& tensor) {
  if (const auto type = type_of(tensor.scalar_type())) return {*type, 1};
  return {TORII_U8, static_cast<std::size_t>(tensor.element_size())};
}

torii_type type_to_combine(const at::Tensor& tensor) {
  const auto type = type_of(tensor.scalar_type());
  if (!type) refuse(std::string("torii does not combine tensors of ") + c10::toString(tensor.scalar_type()));
  return *type;
}

torii_op op_of(const c10d::ReduceOp& op, const at::Tensor& tensor) {
  const bool is_integral = at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
  const auto bits = [&](torii_op made, const char* name) {
    if (!is_integral) refuse(std::string("Cannot use ReduceOp.") + name + " with non-integral dtype");
    return made;
  };
  switch (static_cast<c10d::ReduceOp::RedOpType>(op)) {
    case c10d::ReduceOp::SUM:
      return TORII_SUM;
    case c10d::ReduceOp::AVG:
      return TORII_AVG;
    case c10d::ReduceOp::PRODUCT:
      return TORII_PROD;
    case c10d::ReduceOp::MIN:
      return TORII_MIN;
    case c10d::ReduceOp::MAX:
      return TORII_MAX;
    case c10d::ReduceOp::BAND:
      return bits(TORII_BAND, "BAND");
    case c10d::ReduceOp::BOR:
      return bits(TORII_BOR, "BOR");
    case c10d::ReduceOp::BXOR:
      return bits(TORII_BXOR, "BXOR");
    case c10d::ReduceOp::PREMUL_SUM:
      return TORII_PREMUL_SUM;
    default:
      refuse("this ReduceOp is not one of torii's");
  }
}

at::Tensor factor_of(const c10d::ReduceOp& op, const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const auto* const supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  if (supplement == nullptr) refuse("ReduceOp.PREMUL_SUM has no factor");
  const at::Tensor given = supplement->tensor_factors.empty() ? at::full({1}, supplement->double_factor, at::kDouble)
                                                              : supplement->tensor_factors.front();
  if (given.numel() != 1) {
    refuse("the factor of ReduceOp.PREMUL_SUM has " + std::to_string(given.numel()) + " elements; torii takes one");
  }
  at::Tensor factor = given.detach().to(tensor.scalar_type()).contiguous();
  if (at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true) &&
      factor.to(at::kDouble).item<double>() != given.to(at::kDouble).item<double>()) {
    refuse(std::string("the factor of ReduceOp.PREMUL_SUM is no ") + c10::toString(tensor.scalar_type()));
  }
  return factor;
}

void check_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) refuse("a tensor is not defined");
  if (!tensor.device().is_cpu()) refuse("torii takes tensors of the CPU; this one is on " + tensor.device().str());
  if (tensor.layout() != at::kStrided) refuse("torii takes dense tensors for this operation");
}

const at::Tensor& only_tensor(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() != 1) {
    refuse("requires a single-element tensor list; this one has " + std::to_string(tensors.size()));
  }
  check_tensor(tensors.front());
  return tensors.front();
}

void check_alike(const at::Tensor& tensor, const at::Tensor& model, bool sizes) {
  check_tensor(tensor);
  if (tensor.scalar_type() != model.scalar_type()) {
    refuse(std::string("invalid tensor type: ") + c10::toString(tensor.scalar_type()) + " where " +
           c10::toString(model.scalar_type()) + " is needed");
  }
  if (sizes && tensor.numel() != model.numel()) {
    refuse("invalid tensor size: " + std::to_string(tensor.numel()) + " elements where " +
           std::to_string(model.numel()) + " are needed");
  }
}

void check_list(const std::vector<at::Tensor>& tensors, int count, const at::Tensor& model, bool sizes) {
  if (tensors.size() != static_cast<std::size_t>(count)) {
    refuse("requires a list of " + std::to_string(count) + " tensors, one for each rank; this one has " +
           std::to_string(tensors.size()));
  }
  for (const at::Tensor& tensor : tensors) check_alike(tensor, model, sizes);
}

const std::vector<at::Tensor>& only_list(const std::vector<std::vector<at::Tensor>>& lists) {
  if (lists.size() != 1) {
    refuse("requires a single-element list of tensor lists; this one has " + std::to_string(lists.size()));
  }
  return lists.front();
}

}  // namespace torii_torch
