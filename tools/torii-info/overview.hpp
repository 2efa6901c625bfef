// SPDX-License-Identifier: Apache-2.0
// `torii-info` without a command: what was built and which parts work here.
#pragma once

#include "tools/torii-info/report.hpp"

namespace torii::tools {

/// Reads the environment, hwloc and the library, and probes every transport. Throws Error for a bad setting.
Report overview();

}  // namespace torii::tools
