// SPDX-License-Identifier: Apache-2.0
// torii-sim alltoall: orders of sends in the network model, singly or in a scan, and their curves.
#pragma once

#include <functional>

#include "tools/command_line.hpp"
#include "tools/torii-sim/options.hpp"
#include "tools/torii-sim/rows.hpp"

namespace torii::tools {

/// Adds the flags of this command. The returned function runs it and gives the program's exit code; it throws
/// Error{invalid_argument} for senseless input, {unsupported} for an order that the topology does not have.
std::function<int(RowWriter&)> add_alltoall(const CommandLine& command, const SimOptions& options);

}  // namespace torii::tools
