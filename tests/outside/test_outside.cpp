// SPDX-License-Identifier: Apache-2.0
// The algorithm of line.cpp is in no list but its own: it is proved, drawn, simulated, run, listed and forced by name.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collectives/drawing/draw.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "collectives/selection/selection.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

using nlohmann::json;

/// Copies of programs and of the library with the list of this test.
std::string outside_dir() { return std::filesystem::path(build_dir()) / "tests/outside/programs"; }

/// The last names of the list, the last one being that of line.cpp, with this between them.
std::string last_names(const char* between) {
  return std::string(catalogue()[catalogue().size() - 2].name) + between + "line";
}

Outcome copied(const std::string& program, std::vector<std::string> arguments,
               const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), outside_dir() + "/" + program);
  return torii::tests::run(arguments, environment);
}

json json_of(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "-"});
  const Outcome outcome = copied(program, arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  return json::parse(outcome.output);
}

TEST(Outside, TheCatalogueEndsWithTheAlgorithm) {
  EXPECT_EQ(catalogue().back().name, "line");
  EXPECT_EQ(find_algorithm("line"), &catalogue().back());
  EXPECT_EQ(algorithm_names().back(), "line");
}

TEST(Outside, PlansAreProvedAndDrawn) {
  int proved = 0;
  for (const Topology& topology :
       {Topology::node(1), Topology::node(2), Topology::node(7), Topology::torus({3, 2, 2})}) {
    for (const Tuning& tuning : {Tuning{4096, 1, 1, false}, Tuning{4096, 4, 2, true}}) {
      for (const PlanRequest& request : requests_on(topology, tuning)) {
        if (!find_algorithm("line")->why_not(request).empty()) continue;
        const Verdict verdict = verify(*find_algorithm("line"), request);
        ASSERT_TRUE(verdict.ok()) << describe(request) << ": " << verdict.faults.front();
        ++proved;
      }
    }
  }
  // Two widths on four shapes with two tunings; one and two ranks are canonical too.
  EXPECT_EQ(proved, 2 * 4 * 2 + 2 * 2 * 2);
  PlanRequest request;
  request.topology = Topology::node(3);
  const std::vector<Plan> plans = plan_all(*find_algorithm("line"), request);
  EXPECT_TRUE(holds(draw_text(request, plans), "back")) << draw_text(request, plans);
  EXPECT_TRUE(holds(draw_svg(request, plans), "<svg"));
}

TEST(Outside, TablesAndSettingsNameTheAlgorithm) {
  const TuneTable table = TuneTable::parse(R"({"version": 1, "rows": [{"collective": "allreduce", "ranks": [1, 4],
    "algorithm": "line", "segment": 4096, "slots": 4, "window": 2}]})",
                                           "test");
  PlanRequest request;
  request.topology = Topology::node(3);
  EXPECT_EQ(select(table, {}, request, 4096).algorithm->name, "line");
  EXPECT_EQ(select(TuneTable::built_in(), {.algorithm = "line"}, request, 4096).algorithm->name, "line");
}

TEST(Outside, TheEstimateStandsBetweenRowsForTheTopologyAndRowsForAny) {
  PlanRequest request;
  request.topology = Topology::node(3);
  const auto selected = [&](const std::string& rows, bool several_nodes, const Forced& forced = {}) {
    const TuneTable table = TuneTable::parse(R"({"version": 1, "rows": [)" + rows + "]}", "test");
    return select(table, forced, request, 4096, several_nodes);
  };
  const std::string any = R"({"collective": "allreduce", "ranks": [1, 4], "algorithm": "ring", "segment": 4096,
    "slots": 4, "window": 1)";
  const std::string here = any + R"(, "topology": "switch"})";
  const std::string elsewhere = any + R"(, "topology": "node"})";
  EXPECT_EQ(selected("", false).algorithm->name, "trinaryx3") << "the first of the catalogue";
  const Selected free = selected("", true);
  EXPECT_EQ(free.algorithm->name, "line");
  EXPECT_EQ(free.request.tuning.segment_bytes, 1024u);
  EXPECT_EQ(free.explanation, "by hops");
  EXPECT_EQ(selected(any + "}", true).algorithm->name, "line");
  EXPECT_FALSE(selected(any + "}", true).row.has_value());
  EXPECT_EQ(selected(any + "}", false).algorithm->name, "ring");
  EXPECT_EQ(selected(here, true).algorithm->name, "ring");
  EXPECT_EQ(selected(elsewhere, true).algorithm->name, "line") << "a node is one node";
  EXPECT_EQ(selected("", true, {.algorithm = "ring"}).algorithm->name, "ring");
  EXPECT_EQ(selected("", false, {.algorithm = "line"}).request.tuning.slots, 2) << "the tuning of the estimate";
  // An estimate for what the algorithm cannot do is not looked at.
  request.collective = Collective::all_gather;
  EXPECT_EQ(selected("", true).algorithm->name, "ring");
}

TEST(Outside, ToriiInfoListsAndPlansTheAlgorithm) {
  const json all = json_of("torii-info", {});
  EXPECT_EQ(all.at("algorithms").back(), "line");
  for (const json& setting : all.at("settings")) {
    if (setting.at("name") != "TORII_ALGORITHM") continue;
    EXPECT_TRUE(holds(setting.at("accepts"), last_names(" "))) << setting;
  }
  const json plan = json_of("torii-info", {"plan", "allreduce", "--ranks", "4", "--algorithm", "line"});
  EXPECT_EQ(plan.at("algorithm"), "line");
  const Outcome wrong = copied("torii-info", {"plan", "allreduce"}, {"TORII_ALGORITHM=lime"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(holds(wrong.output, "TORII_ALGORITHM is 'lime' (environment); it must be one of auto")) << wrong.output;
  EXPECT_TRUE(holds(wrong.output, last_names(" "))) << wrong.output;
}

TEST(Outside, TheSimulatorRunsTheAlgorithm) {
  const json row = json_of("torii-sim", {"allreduce", "--algorithm", "line", "--topology", "torus:3x3", "--bytes",
                                         "64K", "--data", "--type", "f32"});
  EXPECT_EQ(row.at("algorithm"), "line");
  EXPECT_EQ(row.at("wrong"), 0);
}

#ifdef OUTSIDE_PERF
/// The library comes before the one that the program was linked with.
Outcome preloaded(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), bin_dir() + "/" + program);
  return torii::tests::run(arguments, {"LD_PRELOAD=" + outside_dir() + "/libtorii.so"});
}

TEST(Outside, PerfBinariesRunTheAlgorithm) {
  const Outcome run = preloaded("all_reduce_perf", {"--ranks", "3", "-b", "4", "-e", "64K", "-f", "128", "-n", "2",
                                                    "--algorithm", "line", "--json", "-"});
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_TRUE(holds(run.output, R"("algorithm":"line")")) << run.output;
  EXPECT_TRUE(holds(run.output, "# data: OK")) << run.output;
  const Outcome help = preloaded("tune_perf", {"--help"});
  EXPECT_TRUE(holds(help.output, last_names(","))) << help.output;
}
#endif

}  // namespace
}  // namespace torii::tests
