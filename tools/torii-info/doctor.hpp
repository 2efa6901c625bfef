// SPDX-License-Identifier: Apache-2.0
// `torii-info doctor`: the limits of this machine and container, and the line that lifts each limit.
#pragma once

#include <vector>

#include "tools/torii-info/checks.hpp"
#include "tools/torii-info/report.hpp"

namespace torii::tools {

/// Checks for a job of `ranks` ranks; 0: as many as there are CPUs that may be used. Exit code 3 if something is
/// missing that shared memory needs. Throws Error for a bad setting.
Report doctor(int ranks);

/// The same for given checks.
Report report_checks(int ranks, const std::vector<Check>& checks);

}  // namespace torii::tools
