// SPDX-License-Identifier: Apache-2.0
// Runs torii-info as its users do.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace torii::tests {

using nlohmann::json;

inline const std::string kToriiInfo = std::string(TORII_TEST_BIN_DIR) + "/torii-info";

inline Outcome torii_info(std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), kToriiInfo);
  return run(arguments, environment);
}

inline json json_of(std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.end(), {"--json", "-"});
  const Outcome outcome = torii_info(arguments, environment);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << "one object, nothing else";
  return json::parse(outcome.output);
}

}  // namespace torii::tests
