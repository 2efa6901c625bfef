// SPDX-License-Identifier: Apache-2.0
// Short runs of the commands behind the documentation's figures: curves of trinaryx3, and the bounds of plain copies.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/folder_test.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class CurvesTest : public FolderTest {
 protected:
  static std::vector<Json> rows(const std::string& path) {
    std::ifstream file(path);
    std::vector<Json> list;
    for (std::string line; std::getline(file, line);) list.push_back(Json::parse(line));
    return list;
  }
};

TEST_F(CurvesTest, EveryCurveIsThereAndRight) {
  const std::string script = (fs::path(source_dir()) / "perf" / "trinaryx3_curves").string();
  const Outcome outcome =
      Process({script, "--bin", bin_dir(), "-b", "1K", "-e", "8K", "-f", "8", "--rounds", "1", "--budget", "60",
               "--block-ms", "0.01", "--json", path("c.json"), "--svg", path("c.svg")})
          .wait(90);
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  std::set<std::string> curves;
  for (const Json& row : rows(path("c.json"))) {
    EXPECT_EQ(row.at("wrong"), 0) << row;
    EXPECT_GT(row.at("time_us_median"), 0) << row;
    curves.insert(row.at("topology").get<std::string>() + row.at("algorithm").get<std::string>() +
                  row.at("engines").dump() + row.at("bytes").dump());
  }
  EXPECT_EQ(curves.size(), 2u * 3 * 2 * 2) << outcome.output;
  std::ifstream file(path("c.svg"));
  const std::string drawing((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(drawing.rfind("<svg ", 0), 0u);
  for (const char* text :
       {"8 ranks, torus:2x2x2", "12 ranks, torus:3x2x2", "trinaryx3, 1 engine<", "node, 4 engines"}) {
    EXPECT_NE(drawing.find(text), std::string::npos) << text;
  }
}

TEST_F(CurvesTest, BadCommandLinesAreNamed) {
  struct Bad {
    std::vector<std::string> command;
    int code;
    const char* message;
  };
  const std::string perf = bin_dir() + "/curves_perf", report = bin_dir() + "/curves_report";
  const std::string script = (fs::path(source_dir()) / "perf" / "trinaryx3_curves").string();
  std::ofstream(path("empty")) << "";
  std::ofstream(path("bad")) << "{\n";
  const Bad all[] = {
      {{perf, "--engines", "four"}, 2, "--engines 'four' is not a number"},
      {{perf, "--ranks", "2", "--engines", "17"}, 2, "17"},
      {{perf, "--ranks", "2", "--algorithms", "quantum"}, 2, "quantum"},
      {{perf, "--ranks", "2", "--topology", "torus:3x2"}, 2, "torus:3x2"},
      {{perf, "--algorithms", ""}, 2, "--algorithms: its value is empty"},
      {{perf, "--memory", "lent"}, 2, "--memory 'lent' is unknown"},
      {{perf, "-b", "1M", "-e", "8"}, 2, "-e 8 must be from -b 1M"},
      {{report, "--svg", path("x.svg"), path("none")}, 2, "cannot read"},
      {{report, "--svg", path("x.svg"), path("empty")}, 2, "has no results"},
      {{report, "--svg", path("x.svg"), path("bad")}, 2, "bad:1:"},
      {{script, "--fast"}, 2, "'--fast'"},
      {{script, "--budget", "soon"}, 2, "'soon'"},
      {{script, "--bin", folder_.string()}, 3, "no programs"},
  };
  for (const Bad& bad : all) {
    const Outcome outcome = run(bad.command);
    EXPECT_EQ(outcome.code, bad.code) << outcome.output;
    EXPECT_NE(outcome.output.find(bad.message), std::string::npos) << outcome.output;
  }
}

TEST_F(CurvesTest, SlotCopiesAreRight) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "two sides need two CPUs";
  for (const char* slots : {"1", "3"}) {
    // 1000 bytes are no whole number of slots, and more than all slots hold.
    const Outcome outcome =
        run({bin_dir() + "/slot_copy_perf", "-b", "1000", "-e", "64000", "-f", "64", "--slot", "192", "--slots", slots,
             "--rounds", "2", "--block-ms", "0.1", "--non-temporal", "2K", "--json", path("s.json")});
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    const std::vector<Json> list = rows(path("s.json"));
    ASSERT_EQ(list.size(), 4u) << outcome.output;
    for (const Json& row : list) EXPECT_EQ(row.at("wrong"), 0) << row;
  }
  const std::string perf = bin_dir() + "/slot_copy_perf";
  EXPECT_EQ(run({perf, "-b", "12"}).code, 2);
  EXPECT_EQ(run({perf, "--slot", "100"}).code, 2);
  EXPECT_EQ(run({perf, "--move", "fly"}).code, 2);
  EXPECT_EQ(run({perf, "-b", "64K", "-e", "8K"}).code, 2);
  EXPECT_EQ(run({perf, "--slots", "0"}).code, 2);
  EXPECT_EQ(run({"taskset", "-c", "0", perf, "-e", "8K"}).code, 3);
}

}  // namespace
}  // namespace torii::tests
