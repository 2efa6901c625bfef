// SPDX-License-Identifier: Apache-2.0
// _torii.Request: a started or persistent operation, whose buffers are locked until it has ended.
#pragma once

#include "python/extension/team.hpp"

namespace torii_python {

/// Methods of _torii.Team: `_start(...)` and `_prepare(...)`, whose arguments are an `Arguments`.
PyObject* start_operation(PyObject* team, PyObject* const* arguments, Py_ssize_t count);
PyObject* prepare_operation(PyObject* team, PyObject* const* arguments, Py_ssize_t count);

/// Frees the abandoned operations of the team that have ended. The caller has the team.
void sweep_abandoned(TeamObject* team);
/// Ends all of them: those that run fail, with the whole team.
void end_abandoned(TeamObject* team);

/// Adds the type to the module. False, with an exception set, on failure.
bool add_request_type(PyObject* module);

}  // namespace torii_python
