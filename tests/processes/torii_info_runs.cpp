// SPDX-License-Identifier: Apache-2.0
// torii-info as a child process.
#include "tests/processes/torii_info_runs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/support/places.hpp"

namespace torii::tests {

const std::string kToriiInfo = bin_dir() + "/torii-info";

Outcome torii_info(std::vector<std::string> arguments, const std::vector<std::string>& environment) {
  arguments.insert(arguments.begin(), kToriiInfo);
  return run(arguments, environment);
}

json json_of(std::vector<std::string> arguments, const std::vector<std::string>& environment) {
  arguments.insert(arguments.end(), {"--json", "-"});
  const Outcome outcome = torii_info(arguments, environment);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << "one object, nothing else";
  return json::parse(outcome.output);
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace torii::tests
