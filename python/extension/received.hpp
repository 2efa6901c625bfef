// SPDX-License-Identifier: Apache-2.0
// _torii.Received: what a receive has got.
#pragma once

#include <torii/torii.h>

#include "python/extension/python.hpp"

namespace torii_python {

/// A new object, which knows nothing yet. The library writes into `place`, which lives as long as the object.
Owned make_received(torii_received*& place);

/// Adds the type to the module. False, with an exception set, on failure.
bool add_received_type(PyObject* module);

}  // namespace torii_python
