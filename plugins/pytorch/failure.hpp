// SPDX-License-Identifier: Apache-2.0
// Exceptions that failed operations throw into PyTorch. The class needs pybind11, which takes g++ seconds in every
// source that includes it, so it is known to failure.cpp only.
#pragma once

#include <Python.h>
#include <torii/torii.h>

#include <exception>
#include <string>

namespace torii_torch {

/// An exception whose what() is `text`: this rank, the operation and the reason. PyTorch makes a Python exception of it
/// wherever it comes out, also of loss.backward(): the class of torii.torch for the status.
std::exception_ptr make_failure(torii_status status, const std::string& text);
[[noreturn]] void throw_failure(torii_status status, const std::string& text);
/// For pybind11: sets the Python exception of such an exception; throws others on.
void translate_failure(std::exception_ptr exception);

/// Names the function that returns the class for a status. With the GIL.
void set_failure_classes(PyObject* function);

}  // namespace torii_torch
