// SPDX-License-Identifier: Apache-2.0
// The options of a new team, from keyword arguments.
#pragma once

#include <torii/torii.h>

#include <vector>

#include "python/extension/context.hpp"

namespace torii_python {

struct TeamOptions {
  torii_team_options options = {};
  std::vector<int> members;
  std::vector<int> without;
  Exchange exchange = {};
};

/// Reads a dict of options. False, with an exception set, if one is unknown or of a wrong type. The texts are those of
/// the dict, which must live as long.
bool read_team_options(PyObject* dict, TeamOptions& options);

}  // namespace torii_python
