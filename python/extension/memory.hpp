// SPDX-License-Identifier: Apache-2.0
// _torii.Memory and _torii.Region: memory that peers on the node reach in place.
#pragma once

#include "python/extension/python.hpp"

namespace torii_python {

/// Methods of _torii.Context: `_allocate(bytes)` makes a Memory, `_adopt(buffer)` a Region.
PyObject* allocate_memory(PyObject* context, PyObject* bytes);
PyObject* adopt_memory(PyObject* context, PyObject* buffer);

/// Adds the types to the module. False, with an exception set, on failure.
bool add_memory_types(PyObject* module);

}  // namespace torii_python
