// SPDX-License-Identifier: Apache-2.0
// A perf binary is this function with one collective.
#pragma once

#include <torii/torii.h>

namespace torii::perf {

/// Reads the command line, starts or joins ranks, measures and checks every (type, operation, size). Returns the exit
/// code: 0, or 1 for wrong data, 2 for a bad command line, 3 when it is not possible here, 4 timeout, 5 peer lost.
int run(torii_collective collective, int argc, char** argv) noexcept;

}  // namespace torii::perf
