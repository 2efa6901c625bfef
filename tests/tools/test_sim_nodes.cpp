// SPDX-License-Identifier: Apache-2.0
// torii-sim on nodes that hwloc describes: where ranks share caches in groups, levels is chosen, and rightly.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/test_run.hpp"
#include "tests/tools/sim_program.hpp"

namespace torii::tests {
namespace {

using nlohmann::json;

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

struct Server {
  const char* topology;
  std::vector<const char*> bytes;  ///< within the range for which levels makes an estimate
};

/// Servers of 16 to 192 cores. The first row is what `auto` selects, the second node, and others follow.
TEST(SimulatedNodes, InGroupsAreServedByLevels) {
  std::uint64_t cell = 0;
  for (const Server& server :
       {Server{"hwloc:pack:1 l3:2 core:8", {"16K", "32K"}}, Server{"hwloc:pack:1 l3:4 core:4", {"16K", "32K"}},
        Server{"hwloc:pack:1 l3:8 core:8", {"16K", "128K"}}, Server{"hwloc:pack:2 l3:12 core:8", {"64K"}}}) {
    for (const std::string collective : {"allreduce", "broadcast", "reduce", "all_gather", "reduce_scatter"}) {
      const std::string others = collective == "allreduce"    ? "ring,recursive_doubling,rabenseifner"
                                 : collective == "broadcast"  ? "binomial,ring"
                                 : collective == "all_gather" ? "recursive_doubling,ring"
                                                              : "ring";
      for (const char* bytes : server.bytes) {
        if (!is_in_share(cell++, 3)) continue;
        const std::vector<json> rows = rows_of(collective, server.topology, "auto,node," + others, bytes);
        const double time_us = rows.at(0).at("time_us").get<double>();
        const std::string text = collective + " of " + bytes + " on " + server.topology;
        EXPECT_EQ(rows[0].at("algorithm"), "levels") << text;
        for (const json& row : rows) EXPECT_LT(time_us, 1.2 * row.at("time_us").get<double>()) << text << ": " << row;
      }
    }
  }
}

/// Where levels makes no estimate, the tune table decides as it does where nothing is known of caches.
TEST(SimulatedNodes, GetShortAndLongVectorsByTheTuneTable) {
  for (const char* bytes : {"64", "8M"}) {
    const std::vector<json> rows = rows_of("allreduce", "hwloc:pack:1 l3:4 core:4", "auto", bytes);
    EXPECT_NE(rows.at(0).at("algorithm"), "levels") << bytes;
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
  refused({"allreduce", "--topology", "node", "--ranks", "-3"}, "--ranks is -3; on a node it must be from 1 to ");
  refused({"allreduce", "--topology", "node:2*4"}, "--topology is node:2*4: nothing says what lies between its ranks");
  const Outcome outcome = torii_sim({"allreduce", "--topology", "node", "--ranks", "8", "--algorithm", "levels"});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_NE(outcome.output.find("bind each rank to the cores of one cache"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
