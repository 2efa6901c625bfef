// SPDX-License-Identifier: Apache-2.0
// torii-sim started as a process.
#include "tests/tools/sim_program.hpp"

#include "tests/support/places.hpp"

namespace torii::tests {

Outcome torii_sim(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), bin_dir() + "/torii-sim");
  return run(arguments);
}

}  // namespace torii::tests
