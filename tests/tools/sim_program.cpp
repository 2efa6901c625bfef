// SPDX-License-Identifier: Apache-2.0
// torii-sim started as a process.
#include "tests/tools/sim_program.hpp"

namespace torii::tests {

Outcome torii_sim(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::string(TORII_TEST_BIN_DIR) + "/torii-sim");
  return run(arguments);
}

}  // namespace torii::tests
