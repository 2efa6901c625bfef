// SPDX-License-Identifier: Apache-2.0
// torii-info costs: runs a program, and sums what its ranks tell of calls that were not like those before.
#pragma once

#include <string>
#include <vector>

#include "tools/torii-info/report.hpp"

namespace torii::tools {

/// Runs `command` (program and arguments) with the setting LOG at info or above, and passes on what it prints, but for
/// the lines that are summed. The report has its exit code, or 128 + signal. Throws Error{invalid_argument} if there is
/// no command or it cannot be started, Error{no_resource} without a process.
Report costs(const std::vector<std::string>& command);

}  // namespace torii::tools
