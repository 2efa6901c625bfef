// SPDX-License-Identifier: Apache-2.0
// Sends and receives between two ranks.
#pragma once

#include "python/extension/team.hpp"

namespace torii_python {

/// Methods of _torii.Team: `_send(array, to, tag, dtype)` and `_recv(out, source, tag, dtype)`, and the same started.
PyObject* send_array(PyObject* team, PyObject* const* arguments, Py_ssize_t count);
PyObject* recv_array(PyObject* team, PyObject* const* arguments, Py_ssize_t count);
PyObject* start_send(PyObject* team, PyObject* const* arguments, Py_ssize_t count);
PyObject* start_recv(PyObject* team, PyObject* const* arguments, Py_ssize_t count);

}  // namespace torii_python
