// SPDX-License-Identifier: Apache-2.0
// torii-info constants: the numbers that decide how fast torii is and how it waits, and where each comes from.
#pragma once

#include "tools/torii-info/report.hpp"

namespace torii::tools {

Report constants();

}  // namespace torii::tools
