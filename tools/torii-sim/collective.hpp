// SPDX-License-Identifier: Apache-2.0
// One collective of the catalogue, simulated.
#pragma once

#include "tools/torii-sim/options.hpp"
#include "tools/torii-sim/rows.hpp"

namespace torii::tools {

/// Simulates the call that `options` describe and adds its row. Returns the program's exit code. Throws
/// Error{invalid_argument} for options that do not fit the collective, {unsupported} where the algorithm cannot serve
/// it.
int run_collective(const SimOptions& options, RowWriter& rows);

}  // namespace torii::tools
