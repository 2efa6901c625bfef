// SPDX-License-Identifier: Apache-2.0
// The Python classes of failures.
#include "plugins/pytorch/failure.hpp"

namespace torii_torch {
namespace {

PyObject* class_of_status = nullptr;

}  // namespace

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

void set_failure_classes(PyObject* function) {
  PyObject* const before = class_of_status;
  class_of_status = Py_NewRef(function);
  Py_XDECREF(before);
}

}  // namespace torii_torch
