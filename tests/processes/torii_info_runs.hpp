// SPDX-License-Identifier: Apache-2.0
// Runs torii-info as its users do.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace torii::tests {

using nlohmann::json;

extern const std::string kToriiInfo;  ///< the program

Outcome torii_info(std::vector<std::string> arguments, const std::vector<std::string>& environment = {});
/// Its output with --json -, parsed.
json json_of(std::vector<std::string> arguments, const std::vector<std::string>& environment = {});
std::string content(const std::filesystem::path& path);

}  // namespace torii::tests
