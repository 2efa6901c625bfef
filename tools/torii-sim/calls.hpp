// SPDX-License-Identifier: Apache-2.0
// The calls of a command line: one, or a scan over algorithms, topologies, engines and sizes; and figures.
#pragma once

#include "tools/torii-sim/options.hpp"
#include "tools/torii-sim/rows.hpp"

namespace torii::tools {

/// Simulates all of them and adds their rows. Returns the program's exit code. Throws what simulate_call() throws; a
/// scan skips calls that an algorithm cannot serve.
int run_calls(const SimOptions& options, RowWriter& rows);

}  // namespace torii::tools
