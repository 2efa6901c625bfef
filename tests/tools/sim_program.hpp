// SPDX-License-Identifier: Apache-2.0
// torii-sim as users call it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/process.hpp"

namespace torii::tests {

inline Outcome torii_sim(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::string(TORII_TEST_BIN_DIR) + "/torii-sim");
  return run(arguments);
}

}  // namespace torii::tests
