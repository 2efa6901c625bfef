// SPDX-License-Identifier: Apache-2.0
// The factor of a premul_sum: from a number of Python to an element of a call's type.
#pragma once

#include <torii/torii.h>

#include <array>
#include <cstddef>

#include "python/extension/python.hpp"

namespace torii_python {

/// One element of any type.
using Factor = std::array<std::byte, 16>;

/// Writes the number as one element, floats rounded to nearest even. Types without a premul_sum get zeros: the library
/// refuses them. False, with an exception set, if the object is no number, or does not fit an integer type.
bool read_factor(PyObject* number, torii_type type, Factor& factor);

}  // namespace torii_python
