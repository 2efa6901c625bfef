// SPDX-License-Identifier: Apache-2.0
// torii-sim as users call it.
#pragma once

#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace torii::tests {

// Starts torii-sim with these arguments and waits for its end.
Outcome torii_sim(std::vector<std::string> arguments);

}  // namespace torii::tests
