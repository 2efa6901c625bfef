// SPDX-License-Identifier: Apache-2.0
// The program that test_processes starts as ranks: plays one scenario on one transport.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "runtime/base/settings.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "tests/fabric/scenarios.hpp"
#include "tests/fabric/transports.hpp"

namespace {

using namespace torii;

/// False for a name that is none.
bool play(const std::string& scenario, tests::Stage& stage) {
  if (scenario == "peer_dies") {
    tests::peer_dies(stage, [] { (void)raise(SIGKILL); });
    return true;
  }
  for (const tests::NamedScenario& each : tests::scenarios()) {
    if (each.name != scenario) continue;
    each.play(stage);
    stage.meet();
    return true;
  }
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::fprintf(stderr, "usage: fabric_rank TRANSPORT ENGINES SCENARIO SEED\n");
    return 2;
  }
  try {
    const auto exchange = join(Settings::load());
    const auto opened = tests::open_transport(arguments[1], *exchange, std::atoi(arguments[2]));
    tests::Stage stage(opened->transport(), opened->arena(), std::strtoull(arguments[4], nullptr, 10));
    if (!play(arguments[3], stage)) return 2;
    std::printf("rank %d has played %s\n", stage.rank(), arguments[3]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
