// SPDX-License-Identifier: Apache-2.0
// Transposes and permutations of arrays that are dealt over the ranks.
#pragma once

#include "python/extension/python.hpp"

namespace torii_python {

/// Methods of _torii.Team: `_transpose(array, out, extents, axes)` and `_permute(array, destinations, out)`.
PyObject* transpose_array(PyObject* team, PyObject* args);
PyObject* permute_items(PyObject* team, PyObject* args);

/// A function of the module: `split(items, ranks, rank) -> (first, count)`.
PyObject* split_items(PyObject* module, PyObject* args);

}  // namespace torii_python
