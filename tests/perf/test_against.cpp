// SPDX-License-Identifier: Apache-2.0
// The comparison of two builds: the report over given times, the script's command line, and a short run of one build
// against itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/folder_test.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;
const std::string kScript = (fs::path(source_dir()) / "perf" / "against").string();
const std::string kDev = (fs::path(source_dir()) / "dev").string();

class AgainstTest : public FolderTest {
 protected:
  static std::string line(const std::string& side, int round, size_t bytes, double time_us, int wrong = 0) {
    const nlohmann::json json = {{"side", side},
                                 {"round", round},
                                 {"place", "node"},
                                 {"collective", "allreduce"},
                                 {"ranks", 2},
                                 {"bytes", bytes},
                                 {"memory", "malloc"},
                                 {"timing", "loop"},
                                 {"time_us_median", time_us},
                                 {"wrong", wrong},
                                 {"commit", "commit of " + side}};
    return json.dump() + "\n";
  }
};

TEST_F(AgainstTest, ReportPairsRoundsAndPrintsTheWorstFirst) {
  std::string text;
  // Ratios 1.1, 1.2, 1.5 in spite of a machine that doubles its speed; then 2, 0.5, 1.
  const double slower[] = {1.1, 1.2, 1.5}, mixed[] = {2, 0.5, 1};
  for (int round = 0; round < 3; ++round) {
    const double old_us = round == 2 ? 5 : 10;
    text += line("new", round, 8, old_us * mixed[round]) + line("old", round, 8, old_us);
    text += line("old", round, 1024, old_us) + line("new", round, 1024, old_us * slower[round]);
  }
  const Outcome outcome = run({bin_dir() + "/against_report", write("a.json", text)});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  const size_t worst = outcome.output.find("   1K "), other = outcome.output.find("    8 ");
  ASSERT_NE(worst, std::string::npos) << outcome.output;
  ASSERT_NE(other, std::string::npos) << outcome.output;
  EXPECT_LT(worst, other) << outcome.output;
  // Medians 1.2 and 1; quartiles 1.15 and 1.35, 0.75 and 1.5.
  EXPECT_TRUE(holds(outcome.output, "   1.200    0.200     3  slower")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "   1.000    0.750     3  \n")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "mean new/old 1.095, median 1.100: all (2 cells, 1 slower, 0 faster)"))
      << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "# old: commit commit of old")) << outcome.output;
}

TEST_F(AgainstTest, ReportTakesMpisTimesAndSaysWhatIsWrong) {
  nlohmann::json json = nlohmann::json::parse(line("old", 1, 8, 1));
  json["mpi_us"] = 4.0;
  json["wrong_mpi"] = 0;
  json["place"] = "openmpi";
  std::string text = json.dump() + "\n";
  json["side"] = "new";
  json["mpi_us"] = 2.0;
  text += json.dump() + "\n";
  const Outcome mpi = run({bin_dir() + "/against_report", write("m.json", text)});
  EXPECT_EQ(mpi.code, 0) << mpi.output;
  EXPECT_TRUE(holds(mpi.output, "       4.00        2.00    0.500")) << mpi.output;

  const Outcome wrong =
      run({bin_dir() + "/against_report", write("w.json", line("old", 1, 8, 1) + line("new", 1, 8, 1, 3))});
  EXPECT_EQ(wrong.code, 1) << wrong.output;
  EXPECT_TRUE(holds(wrong.output, "WRONG data: 3 elements")) << wrong.output;
  const Outcome alone = run({bin_dir() + "/against_report", write("o.json", line("old", 1, 8, 1))});
  EXPECT_EQ(alone.code, 2) << alone.output;
  EXPECT_TRUE(holds(alone.output, "no cell with times of both sides")) << alone.output;
  const Outcome side = run({bin_dir() + "/against_report", write("s.json", line("young", 1, 8, 1))});
  EXPECT_EQ(side.code, 2) << side.output;
  EXPECT_TRUE(holds(side.output, "s.json:1: side 'young' is neither old nor new")) << side.output;
}

TEST_F(AgainstTest, ScriptRefusesWhatItDoesNotKnow) {
  const std::string none = (folder_ / "none" / "file").string();
  const auto refuses = [](const std::vector<std::string>& command, int code, const std::string& reason) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, code) << outcome.output;
    EXPECT_TRUE(holds(outcome.output, reason)) << outcome.output;
  };
  refuses({kScript, "--fast"}, 2, "'--fast'");
  refuses({kScript, "--old"}, 2, "--old needs a value");
  refuses({kScript, "--old", bin_dir(), "--repeats", "0"}, 2, "--repeats '0'");
  refuses({kScript, "--old", bin_dir(), "--ranks", "2,3"}, 2, "--ranks '3' is unknown: use a list of 2,4,8");
  refuses({kScript, "--old", bin_dir(), "--collectives", "allreduce"}, 2, "--collectives 'allreduce'");
  refuses({kScript, "--old", bin_dir(), "--places", ","}, 2, "--places is empty");
  refuses({kScript, "--new", bin_dir()}, 2, "--old DIR is missing");
  refuses({kScript, "--old", folder_.string(), "--new", bin_dir()}, 3, "no programs in '" + folder_.string() + "'");
  refuses({kScript, "--old", bin_dir(), "--new", bin_dir(), "--json", none}, 2, "'" + none + "'");
  refuses({kDev, "against"}, 2, "a commit is missing");
  EXPECT_EQ(run({kScript, "--help"}).code, 0);
}

TEST_F(AgainstTest, DevRefusesBeforeItBuilds) {
  if (!fs::exists(fs::path(source_dir()) / ".git") || run({"which", "git"}).code != 0) {
    GTEST_SKIP() << "the sources are no git repository, or git is missing";
  }
  const Outcome unknown = run({kDev, "against", "no-such-commit"});
  EXPECT_EQ(unknown.code, 2) << unknown.output;
  EXPECT_TRUE(holds(unknown.output, "'no-such-commit' is not a commit")) << unknown.output;
  const Outcome flag = run({kDev, "against", "HEAD", "--fast"});
  EXPECT_EQ(flag.code, 2) << flag.output;
  EXPECT_TRUE(holds(flag.output, "'--fast'")) << flag.output;
}

TEST_F(AgainstTest, OneBuildAgainstItself) {
  const std::string json = (folder_ / "self.json").string();
  const Outcome outcome =
      Process({kScript, "--old", bin_dir(), "--new", bin_dir(), "--quick", "--places", "node", "--ranks", "2",
               "--collectives", "all_reduce,barrier", "--repeats", "2", "--json", json})
          .wait(100);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  // 6 sizes on two kinds of memory and the barrier, each in two timings.
  EXPECT_TRUE(holds(outcome.output, ": all (26 cells")) << outcome.output;
  std::ifstream file(json);
  std::string order;
  for (std::string text; std::getline(file, text);) {
    const auto row = nlohmann::json::parse(text);
    if (row.at("bytes") == 8) order += row.at("side") == "old" ? 'o' : 'n';
  }
  // Old, new, new, old: neither side always comes first. Every second run is another size.
  EXPECT_EQ(order.substr(0, 4), "onno") << order;
  EXPECT_EQ(std::count(order.begin(), order.end(), 'o'), std::count(order.begin(), order.end(), 'n')) << order;
}

/// What cannot run here is said once, however many runs it leaves out.
TEST_F(AgainstTest, WhatIsMissingIsLeftOutOnce) {
  const fs::path bare = folder_ / "bin";
  fs::create_directory(bare);
  std::ofstream(bare / "torii-run") << "#!/bin/sh\nexit 1\n";
  fs::permissions(bare / "torii-run", fs::perms::owner_all);
  const Outcome outcome = run({kScript, "--old", bare.string(), "--new", bin_dir(), "--places", "node", "--ranks",
                               "2,4", "--collectives", "scan", "--repeats", "2", "--json", path("l.json")});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  const std::string told = "# left out: node: no scan_perf in " + bare.string();
  const size_t first = outcome.output.find(told);
  ASSERT_NE(first, std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find(told, first + 1), std::string::npos) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "nothing was timed")) << outcome.output;
}

/// A program that fails is named, with what it said, and the script ends with 1.
TEST_F(AgainstTest, AFailedRunIsTold) {
  const fs::path broken = folder_ / "bin";
  fs::create_directory(broken);
  for (const std::string name : {"torii-run", "all_reduce_perf"}) {
    std::ofstream(broken / name) << "#!/bin/sh\necho planted fault\nexit 1\n";
    fs::permissions(broken / name, fs::perms::owner_all);
  }
  const Outcome outcome =
      Process({kScript, "--old", broken.string(), "--new", bin_dir(), "--quick", "--places", "node", "--ranks", "2",
               "--collectives", "all_reduce", "--repeats", "1", "--json", (folder_ / "f.json").string()})
          .wait(60);
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "FAILED: old: node 2 all_reduce malloc isolated 8 8")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "planted fault")) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
