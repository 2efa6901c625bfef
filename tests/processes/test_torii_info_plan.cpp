// SPDX-License-Identifier: Apache-2.0
// torii-info plan: what it says and draws of plans, and that the committed pictures are what it draws.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "tests/processes/torii_info_runs.hpp"
#include "tests/support/places.hpp"
#include "tools/torii-info/plan.hpp"

namespace torii::tests {
namespace {

TEST(ToriiInfoPlan, ForcedTreesOnATorus) {
  const Outcome text = torii_info({"plan", "broadcast", "--topology", "torus:3x3x3", "--algorithm", "trinaryx3",
                                   "--root", "5", "--rank", "7", "--slots", "3"});
  EXPECT_EQ(text.code, 0) << text.output;
  for (const char* part :
       {"broadcast on torus:3x3x3, 27 ranks, root 5, 1M (262144 elements of f32)", "forced by TORII_ALGORITHM (option)",
        "TORII_SLOTS (option) overrides it", "proof     ok for every length: height 7",
        "proved    data            78 result blocks hold the operand that they should", "0 shared in a step (0.0 %)",
        "rank 7\n", "down tree 2: parent ", "one of 27 ranks",
        "recursive_doubling: recursive_doubling does barrier, allreduce, all_gather, scan, exscan; not broadcast"}) {
    EXPECT_TRUE(holds(text.output, part)) << part << " in " << text.output;
  }
  EXPECT_FALSE(holds(text.output, "rank 8\n"));
}

TEST(ToriiInfoPlan, JsonHasOrderProofAndFlows) {
  const json plan = json_of({"plan", "allreduce", "--ranks", "3", "--algorithm", "ring", "--bytes", "1001", "--type",
                             "bf16", "--wire", "f32"});
  EXPECT_EQ(plan.at("bytes"), 1000) << "whole elements";
  EXPECT_EQ(plan.at("elements"), 500);
  EXPECT_TRUE(plan.at("wide").get<bool>());
  EXPECT_TRUE(plan.at("verdict").at("ok").get<bool>());
  ASSERT_EQ(plan.at("orders").size(), 3u) << "every block starts at another rank";
  std::set<std::string> orders;
  for (const json& order : plan.at("orders")) orders.insert(order.at("expression"));
  EXPECT_EQ(orders, (std::set<std::string>{"((0 1) 2)", "((1 2) 0)", "((2 0) 1)"}));
  ASSERT_EQ(plan.at("plans").size(), 3u);
  const json& flow = plan.at("plans")[1].at("lanes")[0].at("flows")[0];
  EXPECT_FALSE(flow.at("label").get<std::string>().empty());
  EXPECT_LE(plan.at("rings").at("call_bytes"), plan.at("rings").at("outbox_bytes"));
  EXPECT_GE(plan.at("rings").at("entries"), plan.at("rings").at("slots"));
}

TEST(ToriiInfoPlan, JsonHasExchanges) {
  const json plan = json_of({"plan", "scatter", "--ranks", "4", "--root", "2", "--algorithm", "direct"});
  const json& root = plan.at("plans")[2].at("exchange");
  EXPECT_EQ(root.at("to"), json({3, 0, 1}));
  EXPECT_EQ(root.at("from"), json::array());
  EXPECT_EQ(plan.at("plans")[0].at("exchange").at("from"), json({2}));
  EXPECT_EQ(plan.at("plans")[0].at("exchange").at("to"), json::array());
}

TEST(ToriiInfoPlan, EveryAlgorithmThatSaysItWouldServeDoes) {
  int served = 0;
  for (const char* collective : {"barrier", "broadcast", "reduce", "allreduce", "all_gather", "reduce_scatter",
                                 "alltoall", "scatter", "gather"}) {
    const json free = json_of({"plan", collective, "--ranks", "6"});
    for (const json& other : free.at("others")) {
      const std::string algorithm = other.at("algorithm");
      const Outcome forced = torii_info({"plan", collective, "--ranks", "6", "--algorithm", algorithm});
      const bool would = other.at("why_not").get<std::string>().empty();
      EXPECT_EQ(forced.code, would ? 0 : 3) << collective << " " << algorithm << ": " << forced.output;
      served += would ? 1 : 0;
    }
  }
  EXPECT_GE(served, 6);
}

TEST(ToriiInfoPlan, OtherAlgorithmsSayHowManySlotsTheyNeed) {
  const std::vector<std::string> line{"plan", "all_gather", "--ranks", "6", "--algorithm", "node", "--slots", "8"};
  std::map<std::string, int> slots;
  const json plan = json_of(line);
  for (const json& other : plan.at("others")) slots[other.at("algorithm")] = other.value("slots_least", 0);
  EXPECT_EQ(slots.at("recursive_doubling"), 1);
  EXPECT_EQ(slots.at("neighbor_exchange"), 2);
  EXPECT_EQ(slots.at("bucket"), 3);
  EXPECT_EQ(slots.at("direct"), 0) << "it does not serve the call";
  const std::string text = torii_info(line).output;
  EXPECT_TRUE(holds(text, "recursive_doubling: would serve if forced\n")) << text;
  EXPECT_TRUE(holds(text, "bucket: would serve if forced; needs 3 of 8 slots\n")) << text;
}

TEST(ToriiInfoPlan, LargeTeamsAreProvedOnDemand) {
  const std::vector<std::string> line{"plan", "reduce", "--topology", "torus:6x6x3", "--algorithm", "trinaryx3"};
  const json quick = json_of(line);
  EXPECT_TRUE(quick.at("verdict").is_null());
  EXPECT_EQ(quick.at("plans").size(), 1u);
  std::vector<std::string> thorough = line;
  thorough.emplace_back("--verify");
  const json proved = json_of(thorough);
  EXPECT_EQ(proved.at("verdict").at("height"), 6 + 6 + 3 - 2);
  EXPECT_EQ(proved.at("orders"), quick.at("orders")) << "the declared order is the derived one";
  EXPECT_EQ(quick.at("orders").size(), 3u);
}

TEST(ToriiInfoPlan, SaysWhatIsMadeToFit) {
  const Outcome shortened = torii_info({"plan", "allreduce", "--segment", "1G"});
  EXPECT_TRUE(holds(shortened.output, "instead, to fit into the team's outbox")) << shortened.output;
  EXPECT_FALSE(holds(torii_info({"plan", "allreduce", "--bytes", "8"}).output, "instead"));
  const Outcome fewer = torii_info({"plan", "allreduce", "--bytes", "1M"}, {"TORII_SLOTS=256"});
  EXPECT_TRUE(holds(fewer.output, "64 slots instead, as many as rings have entries")) << fewer.output;
}

TEST(ToriiInfoPlan, AFaultIsPrintedAndEndsWithOne) {
  tools::PlanQuestion question;
  question.collective = "allreduce";
  tools::PlanAnswer answer = tools::answer(question);
  EXPECT_EQ(tools::report_plan(answer).code, 0);
  answer.verdict->faults = {"rank 1, lane 0: planted"};
  const tools::Report report = tools::report_plan(answer);
  EXPECT_EQ(report.code, 1);
  EXPECT_TRUE(holds(report.text, "FAULTS\n") && holds(report.text, "rank 1, lane 0: planted\n")) << report.text;
  EXPECT_FALSE(report.json.at("verdict").at("ok").get<bool>());
}

/// Rows for switches, and slots for what is sent, are those of ranks on several nodes.
TEST(ToriiInfoPlan, RanksOnSeveralNodesStandOnASwitch) {
  const std::vector<std::string> command = {"plan",    "alltoall", "--ranks",     "8",
                                            "--bytes", "64K",      "--algorithm", "direct"};
  std::vector<std::string> apart = command;
  apart.push_back("--several-nodes");
  const json near = json_of(command);
  const json far = json_of(apart);
  EXPECT_FALSE(holds(near.at("why"), "on a switch")) << near.at("why");
  EXPECT_TRUE(holds(far.at("why"), "alltoall on a switch, 5 to 8 ranks, up to 160K -> direct")) << far.at("why");
  EXPECT_FALSE(near.at("several_nodes").get<bool>());
  EXPECT_TRUE(far.at("several_nodes").get<bool>());
  EXPECT_TRUE(holds(torii_info(apart).output, "alltoall on node, 8 ranks on several nodes, 64K")) << far;
}

TEST(ToriiInfoPlan, WithoutARowTheCatalogueDecides) {
  const Outcome free = torii_info({"plan", "allreduce", "--ranks", "9216"});
  EXPECT_TRUE(holds(free.output, "fits: the first of the catalogue that can, with the default tuning")) << free.output;
  const Outcome ring = torii_info({"plan", "allreduce", "--ranks", "300", "--algorithm", "ring"});
  EXPECT_TRUE(holds(ring.output, "the first 16 of 300 blocks; all with --verify")) << ring.output;
}

/// docs/pictures/README.md has one command per picture.
TEST(ToriiInfoPlan, CommittedPicturesAreWhatItDraws) {
  const std::filesystem::path folder = std::filesystem::path(source_dir()) / "docs" / "pictures";
  std::istringstream lines(content(folder / "README.md"));
  int pictures = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t flag = line.find(" --svg ");
    if (!line.starts_with("torii-info plan ") || flag == std::string::npos) continue;
    const std::string picture = line.substr(flag + 7);
    const Outcome drawn =
        run({"sh", "-c", "cd " + folder.string() + " && " + kToriiInfo + line.substr(10, flag - 10) + " --svg -"});
    EXPECT_EQ(drawn.code, 0) << drawn.output;
    EXPECT_TRUE(drawn.output.starts_with("<svg ")) << line;
    EXPECT_TRUE(drawn.output == content(folder / picture)) << "draw it again: " << line;
    ++pictures;
  }
  EXPECT_GE(pictures, 2);
}

/// The pictures of docs/pictures/draw.py: house, ring, and segment from a plan.
TEST(ToriiInfoPlan, CommittedDrawingsAreWhatTheScriptDraws) {
  if (run({"python3", "-c", ""}).code != 0) GTEST_SKIP() << "python3 is not installed";
  const std::filesystem::path folder = std::filesystem::path(source_dir()) / "docs" / "pictures";
  std::istringstream lines(content(folder / "README.md"));
  int pictures = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find(" > ");
    if (line.find("./draw.py ") == std::string::npos || end == std::string::npos) continue;
    std::string command = line.substr(0, end);
    if (command.starts_with("torii-info ")) command = kToriiInfo + command.substr(10);
    const Outcome drawn = run({"sh", "-c", "cd " + folder.string() + " && " + command});
    EXPECT_EQ(drawn.code, 0) << drawn.output;
    EXPECT_TRUE(drawn.output.starts_with("<svg ")) << line;
    EXPECT_TRUE(drawn.output == content(folder / line.substr(end + 3))) << "draw it again: " << line;
    ++pictures;
  }
  EXPECT_EQ(pictures, 3);
}

}  // namespace
}  // namespace torii::tests
