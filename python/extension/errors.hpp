// SPDX-License-Identifier: Apache-2.0
// From a status of the C interface to an exception of the package.
#pragma once

#include <torii/torii.h>

#include <string>
#include <vector>

#include "python/extension/python.hpp"

namespace torii_python {

/// Functions and classes of the package's Python files, which torii/__init__.py hands over when it is imported.
struct Hooks {
  PyObject* make_error = nullptr;  ///< (status, reason, lost members) -> exception
  PyObject* new_result = nullptr;  ///< (input, shape) -> array of the input's kind
  PyObject* request = nullptr;     ///< the class of requests
};
extern Hooks hooks;

/// Sets torii.Error, or the class of this status, as the current exception, with the calling thread's
/// torii_last_error(). `team` may be NULL; its lost members tell which rank is meant. Returns nullptr.
PyObject* raise_status(torii_status status, const torii_team* team);
/// The same with a reason and lost members that were kept, because later calls may have failed.
PyObject* raise_status(torii_status status, const std::string& reason, const std::vector<int>& lost);
/// The members of the team that are known to be lost. `team` may be NULL.
std::vector<int> lost_members(const torii_team* team);

/// ValueError with a text put together as by printf. Returns false.
bool value_error(const char* format, ...);

/// What `body` says, which describes the operands of a call. False, with MemoryError set, if there is no memory for
/// that: the call is then refused as others are.
template <typename Body>
bool describes(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return false;
  }
}

/// Reads an argument called `name`, clipped to the range of the type. False, with TypeError set, if it is no integer.
bool read_integer(PyObject* object, const char* name, Py_ssize_t& number);

/// The text that str() gives. Empty if it raises; the exception is cleared. Without an exception set before.
std::string text_of(PyObject* object);
/// The message of the current exception, which stays set.
std::string current_message();

}  // namespace torii_python
