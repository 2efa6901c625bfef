// SPDX-License-Identifier: Apache-2.0
// Sums over leaves.
#pragma once

#include "python/extension/python.hpp"

namespace torii_python {

/// Methods of _torii.Team: `_make_leaves(leaves, first, count) -> capsule`, and `_run_leaves(capsule, own, collective,
/// array or function, out, op, root, dtype)`, which returns `out`. `own`: leaves of this rank.
PyObject* make_leaves(PyObject* team, PyObject* args);
PyObject* run_leaves(PyObject* team, PyObject* args);

}  // namespace torii_python
