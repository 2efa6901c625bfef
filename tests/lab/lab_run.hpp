// SPDX-License-Identifier: Apache-2.0
// Runs of torii-lab and their reports, skipped where this user may not make namespaces.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace torii::tests {

using Words = std::vector<std::string>;

/// A test with a folder of its own, and with everything as before at its end.
class Lab : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  static Words command(const Words& network, const Words& program);
  /// The report of a run that must succeed.
  nlohmann::json report(const Words& network, const Words& program, std::string* output = nullptr) const;
  std::string path(const std::string& name) const { return folder_ / name; }

  std::filesystem::path folder_;

 private:
  std::vector<std::string> before_;
};

/// Bytes that a directed link has carried.
double link_bytes(const nlohmann::json& report, int from, const std::string& device);
/// What a laboratory could leave: names of namespaces, devices, mounts, and processes of torii-lab and its probes.
std::vector<std::string> traces();
/// Waits, at most 5 s, until the traces are these.
bool wait_for_traces(const std::vector<std::string>& expected);

}  // namespace torii::tests
