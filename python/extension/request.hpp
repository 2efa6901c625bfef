// SPDX-License-Identifier: Apache-2.0
// _torii.Request: a started or persistent operation, whose buffers are locked until it has ended.
#pragma once

#include <memory>

#include "python/extension/team.hpp"

namespace torii_python {

/// Methods of _torii.Team: `_start(...)` and `_prepare(...)`, whose arguments are an `Arguments`.
PyObject* start_operation(PyObject* team, PyObject* const* arguments, Py_ssize_t count);
PyObject* prepare_operation(PyObject* team, PyObject* const* arguments, Py_ssize_t count);

/// A new object of the class that the package has for requests; nullptr, with an exception set.
Owned new_request();
/// Starts or prepares the operation and makes it the request's. Returns a new reference to `request`, or nullptr with
/// an exception set. The caller has the team.
PyObject* start_request_of(PyObject* request, PyObject* team, std::unique_ptr<Operation> operation, bool is_persistent);

/// Frees the abandoned operations of the team that have ended; returns whether there were any. The caller has the team.
bool sweep_abandoned(TeamObject* team);
/// Ends all of them: those that run fail, with the whole team.
void end_abandoned(TeamObject* team);

/// Adds the type to the module. False, with an exception set, on failure.
bool add_request_type(PyObject* module);

}  // namespace torii_python
