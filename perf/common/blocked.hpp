// SPDX-License-Identifier: Apache-2.0
// barrier_perf --late: what ranks cost that do nothing but wait.
#pragma once

namespace torii::perf {

/// One rank comes to a barrier seconds after the others; prints the CPU time that those have used meanwhile. Returns
/// the program's exit code, which is kWrongData where they used more than --most allows.
int run_blocked(int argc, char** argv) noexcept;

}  // namespace torii::perf
