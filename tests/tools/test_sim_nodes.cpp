// SPDX-License-Identifier: Apache-2.0
// torii-sim on nodes that hwloc describes: where ranks share caches in groups, levels is chosen, and rightly.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

using nlohmann::json;

Outcome torii_sim(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::string(TORII_TEST_BIN_DIR) + "/torii-sim");
  return run(arguments);
}

/// The rows of a call by several algorithms.
std::vector<json> rows_of(const std::string& collective, const std::string& topology, const std::string& algorithms,
                          const std::string& bytes) {
  const Outcome outcome = torii_sim({collective, "--topology", topology, "--algorithm", algorithms, "--bytes", bytes,
                                     "--segment", "table", "--json", "-"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  std::vector<json> rows;
  std::istringstream lines(outcome.output);
  for (std::string line; std::getline(lines, line);) rows.push_back(json::parse(line));
  return rows;
}

/// Servers of 64 and 192 cores. The first row is what `auto` selects, the second node, and others follow.
TEST(SimulatedNodes, InGroupsAreServedByLevels) {
  for (const char* server : {"hwloc:pack:1 l3:8 core:8", "hwloc:pack:2 l3:12 core:8"}) {
    for (const char* collective : {"allreduce", "broadcast", "reduce", "all_gather", "reduce_scatter"}) {
      for (const char* bytes : {"1K", "64K"}) {
        const std::string others = std::string(collective) == "broadcast" ? "binomial,ring" : "ring";
        const std::vector<json> rows = rows_of(collective, server, "auto,node," + others, bytes);
        const double time_us = rows.at(0).at("time_us").get<double>();
        const std::string text = std::string(collective) + " of " + bytes + " on " + server;
        EXPECT_EQ(rows[0].at("algorithm"), "levels") << text;
        EXPECT_LT(time_us, 0.9 * rows.at(1).at("time_us").get<double>()) << text;
        for (const json& row : rows) EXPECT_LT(time_us, 1.1 * row.at("time_us").get<double>()) << text << ": " << row;
      }
    }
  }
}

TEST(SimulatedNodes, WithOneCacheAreServedAsBefore) {
  for (const char* node : {"hwloc:pack:1 l3:1 core:16", "hwloc:core:16"}) {
    const std::vector<json> rows = rows_of("allreduce", node, "auto", "64K");
    EXPECT_EQ(rows.at(0).at("topology"), "node") << node;
    EXPECT_NE(rows[0].at("algorithm"), "levels") << node;
  }
}

TEST(SimulatedNodes, AreRefusedWithTheReason) {
  const auto refused = [](std::vector<std::string> arguments, const std::string& reason) {
    const Outcome outcome = torii_sim(std::move(arguments));
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(reason), std::string::npos) << outcome.output;
  };
  refused({"allreduce", "--topology", "hwloc:pack:two"}, "hwloc cannot read this; write levels from the outermost on");
  refused({"allreduce", "--topology", "hwloc:pack:2 l3:2"}, "has no core");
  refused({"allreduce", "--topology", "hwloc:core:4", "--alpha", "3"}, "--alpha has no meaning for hwloc:core:4");
  const Outcome outcome = torii_sim({"allreduce", "--topology", "node", "--ranks", "8", "--algorithm", "levels"});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_NE(outcome.output.find("bind each rank to the cores of one cache"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
