// SPDX-License-Identifier: Apache-2.0
// torii-sim as users call it: fields, formats, real data, and every bad command line with its reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/test_run.hpp"
#include "tests/tools/sim_program.hpp"

namespace torii::tests {
namespace {

using nlohmann::json;

json json_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "-"});
  const Outcome outcome = torii_sim(std::move(arguments));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  return json::parse(outcome.output);
}

TEST(ToriiSim, SaysWhatItFound) {
  const json row = json_of({"allreduce", "--algorithm", "trinaryx3", "--topology", "torus:3x3x3", "--bytes", "64K"});
  EXPECT_EQ(row.at("collective"), "allreduce");
  EXPECT_EQ(row.at("algorithm"), "trinaryx3");
  EXPECT_EQ(row.at("topology"), "torus:3x3x3");
  EXPECT_EQ(row.at("ranks"), 27);
  EXPECT_EQ(row.at("engines"), 4);
  EXPECT_EQ(row.at("bytes"), 65536);
  EXPECT_EQ(row.at("sharing"), "packet");
  EXPECT_EQ(row.at("links_shared"), 0);
  EXPECT_EQ(row.at("links_shared_percent"), 0);
  EXPECT_GT(row.at("link_bytes_max"), 65536 / 4);
  EXPECT_GT(row.at("time_us"), row.at("bound_us"));
  EXPECT_NEAR(row.at("ratio").get<double>(), row.at("time_us").get<double>() / row.at("bound_us").get<double>(), 1e-9);
  EXPECT_LE(row.at("height"), 7);
  EXPECT_GE(row.at("planning_s"), 0);
  EXPECT_GE(row.at("wall_s"), 0);
}

/// Where the model of neighbor_exchange outbids the tune row of tori, it is faster than the algorithm of that row.
TEST(ToriiSim, NeighborExchangeIsChosenWhereItIsFaster) {
  const std::string info = bin_dir() + "/torii-info";
  int chosen = 0;
  for (const int ranks : {4, 6, 8, 10, 12, 16, 24, 32}) {
    for (const int kib : {2, 8, 12, 32, 128, 512, 1024}) {
      const std::vector<std::string> call = {"all_gather", "--topology", "torus:" + std::to_string(ranks), "--bytes",
                                             std::to_string(kib * 1024 / ranks / 8 * 8 * ranks)};
      std::vector<std::string> question = {info, "plan"};
      question.insert(question.end(), call.begin(), call.end());
      question.insert(question.end(), {"--json", "-"});
      const Outcome plan = run(question);
      ASSERT_EQ(plan.code, 0) << plan.output;
      if (json::parse(plan.output).at("algorithm") != "neighbor_exchange") continue;
      const auto time_us = [&](const char* algorithm) {
        std::vector<std::string> asked = call;
        asked.insert(asked.end(), {"--segment", "table", "--algorithm", algorithm});
        return json_of(asked).at("time_us").get<double>();
      };
      EXPECT_LT(time_us("neighbor_exchange"), time_us(kib <= 8 ? "recursive_doubling" : "bucket"))
          << ranks << " ranks, " << kib << " KiB";
      ++chosen;
    }
  }
  EXPECT_GE(chosen, 20);
}

/// Scale, with real data.
TEST(ToriiSim, RunsFourThousandRanksWithRealData) {
  const json row = json_of({"allreduce", "--algorithm", "recursive_doubling", "--topology", "torus:16x16x16", "--bytes",
                            "1K", "--segment", "1K", "--data", "--type", "i32"});
  EXPECT_EQ(row.at("ranks"), 4096);
  EXPECT_EQ(row.at("wrong"), 0);
  EXPECT_EQ(row.at("hash").get<std::string>().size(), 16U);
}

/// 33 GiB of slots in the runs of few segments, of which hardly any is touched.
TEST(ToriiSim, SlotsThatAreNotUsedTakeNoMemory) {
  const json row = json_of({"allreduce", "--algorithm", "trinaryx3", "--topology", "torus:16x16x16", "--bytes", "64K",
                            "--segment", "10944", "--slots", "64", "--data"});
  EXPECT_EQ(row.at("wrong"), 0);
}

TEST(ToriiSim, RunsEveryCollective) {
  for (const char* collective : {"barrier", "broadcast", "reduce", "allreduce", "all_gather", "reduce_scatter",
                                 "alltoall", "scatter", "gather"}) {
    const json row = json_of({collective, "--topology", "torus:4x3", "--bytes", "12K", "--data", "--segment", "1K"});
    EXPECT_EQ(row.at("collective"), collective);
    EXPECT_GT(row.at("time_us"), 1.4) << collective;
    EXPECT_EQ(row.value("wrong", 0), 0) << collective;
    EXPECT_EQ(row.contains("wrong"), std::string(collective) != "barrier");
  }
  for (const char* type : {"bool", "bf16", "cf64"}) {
    EXPECT_EQ(json_of({"allreduce", "--topology", "torus:4x3", "--data", "--type", type}).at("wrong"), 0) << type;
  }
}

TEST(ToriiSim, WritesCsvAndText) {
  const std::string path =
      std::string(::testing::TempDir()) + "torii_test_sim_rows_" + std::to_string(getpid()) + ".csv";
  const Outcome outcome =
      torii_sim({"reduce", "--topology", "mesh:3x3", "--bytes", "8K", "--root", "4", "--csv", path});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.output.find("mesh:3x3"), std::string::npos) << outcome.output;
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  std::filesystem::remove(path);
  const std::string csv = text.str();
  EXPECT_EQ(csv.rfind("collective,algorithm,topology,", 0), 0U) << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2);
}

TEST(ToriiSim, DrawsLinksAndEngines) {
  const std::string path = std::string(::testing::TempDir()) + "torii_test_sim_" + std::to_string(getpid());
  const Outcome outcome =
      torii_sim({"allreduce", "--topology", "torus:3x3", "--algorithm", "trinaryx3", "--bytes", "64K", "--segment",
                 "4K", "--svg-links", path + "_links.svg", "--svg-time-line", path + "_engines.svg", "--watched", "4"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  const auto count = [&](const std::string& file, const std::string& part) {
    std::ifstream stream(path + file);
    std::ostringstream text;
    text << stream.rdbuf();
    std::filesystem::remove(path + file);
    int found = 0;
    for (std::size_t at = 0; (at = text.str().find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("_links.svg", "<line "), 36) << "a line for each directed link";
  EXPECT_GT(count("_engines.svg", "<rect "), 16) << "a bar for each put";
}

TEST(ToriiSim, DrawsWhatSimulationsTake) {
  const std::vector<std::string> scan = {"allreduce",          "--algorithm", "trinaryx3", "--topology",
                                         "torus:2x2x2",        "--bytes",     "6K",        "--scan",
                                         "shapes=2x2x2,5x5x4", "--json",      "/dev/null", "--cost"};
  std::vector<std::string> drawn = scan;
  drawn.emplace_back("-");
  const Outcome outcome = torii_sim(drawn);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const char* text : {"<svg ", "processor, s", "memory, MiB", ">10^1<", ">10^2<"}) {
    EXPECT_NE(outcome.output.find(text), std::string::npos) << text;
  }
  std::vector<std::string> refused = scan;
  refused.emplace_back("/dev/null/none");
  const Outcome failed = torii_sim(refused);
  EXPECT_EQ(failed.code, 2);
  EXPECT_NE(failed.output.find("cannot write '/dev/null/none'"), std::string::npos) << failed.output;
}

TEST(ToriiSim, WithoutOverlapItTakesLonger) {
  const std::vector<std::string> call = {"allreduce", "--topology", "torus:3x3x3", "--algorithm", "trinaryx3"};
  std::vector<std::string> apart = call;
  apart.push_back("--no-overlap");
  EXPECT_GT(json_of(apart).at("time_us"), json_of(call).at("time_us"));
}

/// A scan of what `auto` takes on a switch, and its verdict.
Outcome cliffs_of(const std::string& collective, const std::string& ranks, const std::string& bytes) {
  Process sim({bin_dir() + "/torii-sim", collective, "--topology", "node", "--segment", "table", "--cliffs", "--scan",
               "ranks=" + ranks, "--scan", "bytes=" + bytes + "*2"});
  return sim.wait(600);
}

/// Twice the bytes never take less, nor 2.2 times as long, and one rank more costs at most half as much again.
TEST(ToriiSim, HasNoCliffsOnASwitch) {
  struct Range {
    const char* collective;
    const char* least_bytes = "8";
    const char* full_ranks = "2..18,23..26,31..34,63..65,127..129,255..257,511..513,1023,1024";
  };
  // A reduce of less is at its bound for as long as one rank takes from all others, and then twice as far from it.
  const std::vector<Range> ranges = {
      {"allreduce"},    {"broadcast"},        {"barrier"},
      {"scan"},         {"reduce", "2K"},     {"scatter", "64"},
      {"gather", "64"}, {"all_gather", "2K"}, {"alltoall", "64", "2..18,31..34,63..65,127..129,255..257"}};
  for (const Range& range : ranges) {
    const std::string bytes = std::string(range.least_bytes) + (is_full() ? "..4M" : "..16K");
    const Outcome outcome = cliffs_of(range.collective, is_full() ? range.full_ranks : "2..9,16,17", bytes);
    EXPECT_EQ(outcome.code, 0) << range.collective << ": " << outcome.output;
    EXPECT_NE(outcome.output.find("0 cliffs in "), std::string::npos) << range.collective;
  }
}

/// On tori only sizes are compared. Other shapes and collectives have cliffs: a row knows the number of ranks and not
/// their dimensions, so it serves one of two shapes with the same number of ranks better.
TEST(ToriiSim, HasNoCliffsOnSmallTori) {
  for (const char* topology : {"torus:3x3", "torus:4x4"}) {
    for (const char* collective : {"allreduce", "all_gather"}) {
      const Outcome outcome =
          torii_sim({collective, "--topology", topology, "--segment", "table", "--cliffs", "--scan", "bytes=64..4M*2"});
      EXPECT_EQ(outcome.code, 0) << outcome.output;
      EXPECT_NE(outcome.output.find("0 cliffs in "), std::string::npos) << outcome.output;
    }
  }
}

TEST(ToriiSim, FindsACliff) {
  // Rounds of pairs cost two steps more where ranks are no power of two.
  const Outcome outcome = torii_sim({"allreduce", "--topology", "node", "--algorithm", "recursive_doubling", "--cliffs",
                                     "--scan", "ranks=2..3", "--bytes", "1K"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.output.find("1 cliffs in 1 comparisons"), std::string::npos) << outcome.output;
}

TEST(ToriiSim, RefusesBadCommandLines) {
  struct Bad {
    std::vector<std::string> arguments;
    int code;
    std::string reason;
  };
  const std::vector<std::string> call = {"allreduce", "--topology", "torus:3x3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), call.begin(), call.end());
    return more;
  };
  const std::vector<Bad> bad = {
      {{"allreduce", "--topology", "torus:3x0"}, 2, "3x0"},
      {{"allreduce", "--topology", "node"}, 2, "--topology node needs --ranks, a number from 1 to"},
      {{"allreduce", "--topology", "torus:3x3*2"}, 3, "one rank on each node"},
      {{"allreduce"}, 2, "--topology"},
      {with({"--algorithm", "swung"}), 3, "no algorithm is called 'swung'"},
      {with({"--bytes", "12Q"}), 2, "--bytes is '12Q'"},
      {with({"--slots", "65"}), 2, "--slots is 65; it must be from 1 to 64, or 0"},
      {with({"--bytes", "200000G", "--data"}), 3, "bytes on 9 ranks takes 5400000.0 GiB"},
      {with({"--segment", "-3"}), 2, "--segment is '-3'"},
      {with({"--segment", "0"}), 2, "--segment is 0; it must be a number of bytes, auto or table"},
      {with({"--budget", "-1"}), 2, "--budget is -1"},
      {with({"--alpha", "nan"}), 2, "--alpha: nan is no number"},
      {with({"--algorithm", ""}), 2, "--algorithm: its value is empty"},
      {with({"--engines", "17"}), 2, "--engines is 17"},
      {with({"--sharing", "fair"}), 2, "--sharing is 'fair'"},
      {with({"--sharing", "reserved"}), 2, "broadcasts on a tree"},
      {with({"--split", "5"}), 2, "--figure is missing"},
      {with({"--split", "0", "--figure", "-"}), 2, "--split is 0"},
      {with({"--bytes", "36", "--figure", "-"}), 2, "powers of 2"},
      {{"reduce", "--topology", "torus:3x3", "--split", "5", "--figure", "-"}, 2, "--split is for allreduce"},
      {{"allreduce", "--topology", "node", "--ranks", "3", "--bytes", "1K", "--svg-links", "-"}, 2, "not node"},
      {with({"--alpha", "-1"}), 2, "--alpha is -1"},
      {with({"--bandwidth", "0"}), 2, "--bandwidth is 0"},
      {with({"--reduce", "nan"}), 2, "--reduce: nan is no number"},
      {with({"--type", "f31"}), 2, "--type is 'f31'"},
      {with({"--op", "average"}), 2, "--op is 'average'"},
      {with({"--op", "band"}), 2, "--op band is not defined"},
      {with({"--root", "2"}), 2, "--root has no meaning"},
      {with({"--cliffs", "--bytes", "1K"}), 2, "--cliffs found nothing to compare"},
      {{"alltoall", "--topology", "torus:3x3", "--sharing", "min", "--cliffs"}, 2, "--cliffs judges calls"},
      {{"reduce", "--topology", "torus:3x3", "--root", "9"}, 2, "--root is 9; it must be from 0 to 8"},
      {with({"--algorithm", "bucket", "--no-overlap"}), 2, "--no-overlap"},
      {with({"--slots", "-1"}), 2, "--slots is -1"},
      {with({"--watched", "9"}), 2, "--watched is 9"},
      {with({"--bytes", "1K", "--svg-links", "no/such/folder/picture"}), 2, "no/such/folder/picture"},
      {with({"--json", "-", "--csv", "-"}), 2, "both want stdout"},
      {with({"--json", "no/such/folder/rows"}), 2, "no/such/folder/rows"},
  };
  for (const Bad& one : bad) {
    const Outcome outcome = torii_sim(one.arguments);
    EXPECT_EQ(outcome.code, one.code) << one.reason << ": " << outcome.output;
    EXPECT_TRUE(holds("\n" + outcome.output, "\ntorii-sim: ") && holds(outcome.output, one.reason)) << outcome.output;
  }
}

TEST(ToriiSim, RefusesNumbersThatAVariableCannotHold) {
  const std::pair<std::string, std::string> bad[] = {
      {"-1", "torii-sim: --seed: -1 is negative; the least is 0\n"},
      {" -1", "torii-sim: --seed:  -1 is negative; the least is 0\n"},
      {"18446744073709551616",
       "torii-sim: --seed: 18446744073709551616 is too large; the most is 18446744073709551615\n"}};
  for (const auto& [seed, reason] : bad) {
    const Outcome outcome = torii_sim({"allreduce", "--topology", "torus:2x2", "--seed", seed});
    EXPECT_EQ(outcome.code, 2) << seed << ": " << outcome.output;
    EXPECT_TRUE(outcome.output.starts_with(reason)) << outcome.output;
  }
  EXPECT_EQ(torii_sim({"allreduce", "--topology", "torus:2x2", "--seed", "18446744073709551615"}).code, 0);
  const Outcome replay = torii_sim({"faults", "--replay", "-7"});
  EXPECT_EQ(replay.code, 2) << replay.output;
  EXPECT_TRUE(replay.output.starts_with("torii-sim: --replay: -7 is negative")) << replay.output;
}

TEST(ToriiSim, EnginesHaveRates) {
  const auto call = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"broadcast", "--topology",  "node",  "--ranks", "2",  "--bytes",
                                          "4M",        "--segment",   "16K",   "--slots", "64", "--window",
                                          "64",        "--algorithm", "chain", "--json",  "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return torii_sim(arguments);
  };
  const auto time_us = [&](const std::vector<std::string>& more) {
    const Outcome outcome = call(more);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return nlohmann::json::parse(outcome.output).at("time_us").get<double>();
  };
  // 3.1 tenths of a link, balanced; a rate of 1 for each is the link's.
  EXPECT_NEAR(time_us({"--engine-rates", "0.1,0.1,0.1,0.01"}) / time_us({"--engine-rates", "1,1,1,1"}), 3.2, 0.2);
  const std::vector<std::pair<std::vector<std::string>, std::string>> bad = {
      {{"--engine-rates", "1,1,0.1"}, "--engine-rates has 3 numbers for 4 engines"},
      {{"--engine-rates", "1,1,0,1"}, "--engine-rates has 0; a rate must be from"},
      {{"--engine-rates", "1,1,1,1", "--sharing", "min"}, "needs --sharing packet, not min"},
  };
  for (const auto& [more, reason] : bad) {
    const Outcome outcome = call(more);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(reason), std::string::npos) << outcome.output;
  }
}

}  // namespace
}  // namespace torii::tests
