// SPDX-License-Identifier: Apache-2.0
// Engines over several cables between two hosts: each carries its share, whatever the order of names on either host,
// and no more than its cable can; a cable that is cut ends the call on both hosts. Loads of a torus beside its plan.
#include <algorithm>
#include <fstream>
#include <regex>

#include "tests/lab/lab_run.hpp"
#include "tests/support/places.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

TEST_F(Lab, EnginesGoOverRails) {
  const Words network{"rails", "3", "--rate", "400"};
  const std::string program = bin_dir() + "/put_bandwidth";
  for (const int engines : {1, 3}) {
    std::string output;
    const auto json = report(network,
                             {program, "-b", "64K", "-e", "64K", "-n", "1", "-w", "0", "--rounds", "1", "--engines",
                              std::to_string(engines), "--provider", "tcp;ofi_rxm"},
                             &output);
    double all = 0;
    for (const char* rail : {"rail0", "rail1", "rail2"}) all += link_bytes(json, 0, rail);
    // Three windows and one, of torii and of the bare loop.
    EXPECT_GT(all, 8.0 * 64 * 65536) << output;
    for (int rail = 0; rail < 3; ++rail) {
      const double share = link_bytes(json, 0, "rail" + std::to_string(rail)) / all;
      const double expected = engines == 3 ? 1.0 / 3 : rail == 0 ? 1.0 : 0.0;
      EXPECT_NEAR(share, expected, 0.05) << output;
    }
  }
}

/// Broadcasts in segments of 16 KiB by which the engines share a stream.
std::string sharing_broadcast(const std::string& bytes, const std::string& provider) {
  return "export TORII_PROVIDER='" + provider + "' TORII_SLOTS=32 TORII_WINDOW=32; exec " + bin_dir() +
         "/broadcast_perf -b " + bytes + " -e " + bytes + " -n 1 -w 1 --segment 16K --algorithm binomial --engines 4";
}

TEST_F(Lab, ASlowRailGetsWhatItCanCarry) {
  // In a full run the rates are so low that a busy machine can serve them: 1024 segments, 31 Mbit/s in all.
  const std::string rate = is_full() ? "10" : "40";
  const std::string slow = is_full() ? "1" : "4";
  const std::string program =
      sharing_broadcast(is_full() ? "16M" : "2M", "tcp;ofi_rxm") + " --json " + path("times.json");
  const Words network{"rails", "4", "--rate", rate, "--link", "0:rail2=" + slow};
  Words words = command(network, {"sh", "-c", program});
  *std::ranges::find(words, "25") = is_full() ? "240" : "25";
  words.insert(std::ranges::find(words, "--"), {"--json", path("report.json")});
  const Outcome outcome = Process(words).wait(is_full() ? 300 : 40);
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  std::ifstream loads(path("report.json"));
  const auto report = nlohmann::json::parse(loads);
  double all = 0;
  for (const char* rail : {"rail0", "rail1", "rail2", "rail3"}) all += link_bytes(report, 0, rail);
  // In rotation each engine has a quarter. A short call gives the slow one more than its 1/31, until it is known.
  EXPECT_LT(link_bytes(report, 0, "rail2") / all, is_full() ? 0.06 : 0.18);
  if (!is_full()) return;
  std::ifstream times(path("times.json"));
  const double time_us = nlohmann::json::parse(times)["time_us_median"];
  const double mbit = 8.0 * (16 << 20) / time_us;
  RecordProperty("mbit_per_s", std::to_string(mbit));
  EXPECT_GT(mbit, 0.9 * 31) << outcome.output;
}

/// The same error on both ranks, within the deadline and the second after it.
TEST_F(Lab, ARailThatIsCutEndsTheCallOnBothHosts) {
  if (!is_full()) GTEST_SKIP() << "takes seconds; conformance_faults has an engine that is cut";
  for (const std::string provider : {"net", "tcp;ofi_rxm"}) {
    const std::string script = "[ $RANK = 0 ] && { sleep 4; ip link set rail1 down; } & export TORII_TIMEOUT=3; " +
                               sharing_broadcast("16M", provider);
    const Outcome outcome = run(command({"rails", "4", "--rate", "10"}, {"sh", "-c", script}));
    EXPECT_EQ(outcome.code, 4) << outcome.output;
    const std::regex error("timeout: no progress for 3000 ms in broadcast[^\n]*");
    std::vector<std::string> errors;
    for (auto at = std::sregex_iterator(outcome.output.begin(), outcome.output.end(), error);
         at != std::sregex_iterator(); ++at) {
      errors.push_back((*at)[0]);
    }
    ASSERT_EQ(errors.size(), 2u) << outcome.output;
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_LT(outcome.seconds, 15) << outcome.output;
  }
}

/// The team of survivors, which are both, goes on over the rails that are left; the first one carries letters too.
TEST_F(Lab, ARailThatIsCutIsLeftOutByTheSurvivors) {
  for (const std::string rail : {"rail0", "rail2"}) {
    for (const std::string provider : {"net", "tcp;ofi_rxm"}) {
      if (!is_full() && (rail == "rail2" || provider == "net")) continue;
      const std::string script = "[ $RANK = 0 ] && { sleep 2; ip link set " + rail +
                                 " down; } & export TORII_TIMEOUT=2 TORII_LOG=warn TORII_PROVIDER='" + provider +
                                 "'; exec " + helper("failure_rank") + " break 9 5000000 200000";
      const Outcome outcome = run(command({"rails", "4", "--rate", "50"}, {"sh", "-c", script}));
      SCOPED_TRACE(rail + ", " + provider + "\n" + outcome.output);
      EXPECT_EQ(outcome.code, 0);
      const std::regex closing("closing engine " + rail.substr(4) + ",");
      const std::regex survivors("survivors work");
      for (const std::regex& line : {closing, survivors}) {
        EXPECT_EQ(std::distance(std::sregex_iterator(outcome.output.begin(), outcome.output.end(), line),
                                std::sregex_iterator()),
                  2);
      }
    }
  }
}

TEST_F(Lab, LinksCarryWhatThePlanSays) {
  if (!is_full()) GTEST_SKIP() << "takes seconds; test_lab_network has predictions without links";
  for (const std::string algorithm : {"bucket", "trinaryx3"}) {
    const std::string program = bin_dir() + "/all_reduce_perf";
    const auto json = report(
        {"torus", "3x3", "--rate", "100", "--plan", "allreduce:" + algorithm + ":1M"},
        {program, "-b", "1M", "-e", "1M", "-n", "1", "-w", "0", "--topology", "torus:3x3", "--algorithm", algorithm});
    for (const auto& link : json["links"]) {
      if (link["of_plan"].is_null()) {
        EXPECT_LT(link["bytes"], 0.05 * json["bytes_most"].get<double>()) << link;
      } else {
        EXPECT_NEAR(link["of_plan"], 1, 0.05) << link;
      }
    }
  }
}

}  // namespace
}  // namespace torii::tests
