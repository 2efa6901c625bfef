// SPDX-License-Identifier: Apache-2.0
// torii-sim alltoall: orders of sends in the network model, one after the other or a whole scan, and their curves.
#pragma once

#include <functional>

#include "tools/command_line.hpp"
#include "tools/torii-sim/options.hpp"
#include "tools/torii-sim/rows.hpp"

namespace torii::tools {

/// Adds the flags that only this command has. What is returned runs it and gives the program's exit code; it throws
/// Error{invalid_argument} for input that makes no sense, {unsupported} for an order that the topology does not have.
std::function<int(RowWriter&)> add_alltoall(CLI::App& command, const SimOptions& options);

}  // namespace torii::tools
