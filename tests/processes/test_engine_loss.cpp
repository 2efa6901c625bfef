// SPDX-License-Identifier: Apache-2.0
// perf/engine_loss: its command line, and that nobody waits for an engine that a rank knows to be lost.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

const std::string kScript = (std::filesystem::path(source_dir()) / "perf" / "engine_loss").string();

Outcome run_script(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kScript);
  arguments.insert(arguments.end(), {"--bin", bin_dir()});
  return run(arguments);
}

TEST(EngineLoss, RefusesWhatItDoesNotUnderstand) {
  const auto expect_refused = [](const std::vector<std::string>& arguments, const std::string& part, int code) {
    const Outcome outcome = run_script(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.output;
    EXPECT_NE(outcome.output.find(part), std::string::npos) << outcome.output;
  };
  expect_refused({"--rounds", "0"}, "--rounds 0: a number from 1 to 99999999", 2);
  expect_refused({"--ranks", "few"}, "--ranks few: a number", 2);
  expect_refused({"--fast"}, "'--fast' is not understood", 2);
  const Outcome elsewhere = run({kScript, "--bin", "/nowhere"});
  EXPECT_EQ(elsewhere.code, 3);
  EXPECT_NE(elsewhere.output.find("no torii-run or no ../tests/bin/failure_rank in /nowhere"), std::string::npos);
  EXPECT_EQ(run({kScript, "--help"}).code, 0);
}

/// Members that do not know which engine is lost wait 2 s for words that it may carry; here two of them know it.
TEST(EngineLoss, SurvivorsDoNotWaitForAnEngineThatIsKnownToBeLost) {
  const Outcome outcome = run_script({"--rounds", "2"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  std::istringstream lines(outcome.output);
  std::string line;
  int measured = 0;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string provider;
    int rounds = 0;
    int went_on = 0;
    double error_ms = 0;
    double team_ms = 0;
    if (!(fields >> provider >> rounds >> went_on >> error_ms >> team_ms)) continue;
    measured += rounds;
    EXPECT_LT(team_ms, 1500) << outcome.output;
  }
  EXPECT_GT(measured, 0) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
