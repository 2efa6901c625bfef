// SPDX-License-Identifier: Apache-2.0
// Sums over leaves.
#pragma once

#include "python/extension/python.hpp"

namespace torii_python {

/// Methods of _torii.Team. `_make_leaves(leaves, first, count) -> (capsule, first, count)`: None stands for what
/// torii_split deals. `_run_leaves(capsule, collective, array or function, out, op, root, dtype)` returns the result,
/// or None if there is none.
PyObject* make_leaves(PyObject* team, PyObject* args);
PyObject* run_leaves(PyObject* team, PyObject* args);

}  // namespace torii_python
