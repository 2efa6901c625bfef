// SPDX-License-Identifier: Apache-2.0
// The Python classes of failures.
#include "plugins/pytorch/failure.hpp"

#include <torch/csrc/Exceptions.h>

namespace torii_torch {
namespace {

PyObject* class_of_status = nullptr;

class Failure final : public torch::PyTorchError {
 public:
  Failure(torii_status status, const std::string& text) : torch::PyTorchError(text), status_(status) {}
  PyObject* python_type() override;

 private:
  torii_status status_;
};

PyObject* Failure::python_type() {
  if (class_of_status == nullptr) return PyExc_RuntimeError;
  PyObject* const found = PyObject_CallFunction(class_of_status, "i", static_cast<int>(status_));
  if (found == nullptr) {
    PyErr_Clear();
    return PyExc_RuntimeError;
  }
  // The package keeps its classes for ever.
  Py_DECREF(found);
  return found;
}

}  // namespace

std::exception_ptr make_failure(torii_status status, const std::string& text) {
  return std::make_exception_ptr(Failure(status, text));
}

void throw_failure(torii_status status, const std::string& text) { throw Failure(status, text); }

void translate_failure(std::exception_ptr exception) {
  try {
    std::rethrow_exception(exception);
  } catch (Failure& failure) {
    PyErr_SetString(failure.python_type(), failure.what());
  }
}

void set_failure_classes(PyObject* function) {
  PyObject* const before = class_of_status;
  class_of_status = Py_NewRef(function);
  Py_XDECREF(before);
}

}  // namespace torii_torch
