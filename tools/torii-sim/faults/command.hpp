// SPDX-License-Identifier: Apache-2.0
// torii-sim faults: histories of teams under faults, on virtual time.
#pragma once

#include <functional>

#include "tools/command_line.hpp"

namespace torii::tools {

/// Adds the flags of this command. The returned function runs it and gives the program's exit code.
std::function<int()> add_faults(const CommandLine& command);

}  // namespace torii::tools
