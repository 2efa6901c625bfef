// SPDX-License-Identifier: Apache-2.0
// What a failed operation throws into PyTorch.
#pragma once

#include <torch/csrc/Exceptions.h>
#include <torii/torii.h>

#include <string>

namespace torii_torch {

/// A failed operation. what() names this rank, the operation and the reason. PyTorch makes a Python exception of it
/// wherever it comes out, also of loss.backward(): the class of torii.torch for the status.
class Failure : public torch::PyTorchError {
 public:
  Failure(torii_status status, const std::string& text) : torch::PyTorchError(text), status_(status) {}
  torii_status status() const noexcept { return status_; }
  PyObject* python_type() override;

 private:
  torii_status status_;
};

/// Names the function that returns the class for a status. With the GIL.
void set_failure_classes(PyObject* function);

}  // namespace torii_torch
