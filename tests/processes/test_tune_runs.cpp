// SPDX-License-Identifier: Apache-2.0
// `torii-info tune` as its users run it: short runs whose output has the right form whatever the times are, refusals,
// and an interrupted run.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/processes/join_job.hpp"
#include "tests/processes/torii_info_runs.hpp"
#include "tests/support/folder_test.hpp"
#include "tests/support/places.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Cells that take a moment. A minute is more than they need, so that time decides nothing.
const Words kBrief = {"tune", "--ranks",    "2",    "--oversubscribe", "--rounds",
                      "3",    "--block-ms", "0.05", "--minutes",       "1"};
const Words kSmall =
    with(kBrief, {"--collectives", "allreduce,barrier", "--algorithms", "ring,node", "-b", "64", "-e", "64"});

class Tune : public FolderTest {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
};

TEST_F(Tune, MakesAFileThatTheLibraryTakes) {
  const std::string table = path("table.json");
  const Outcome made =
      torii_info(with(kSmall, {"-o", table, "--json", path("report.json"), "--raw", path("raw.json")}));
  ASSERT_EQ(made.code, 0) << made.output;
  EXPECT_TRUE(holds(made.output, "export TORII_TUNE_FILE=" + table)) << made.output;
  EXPECT_EQ(files(), (Words{"raw.json", "report.json", "table.json"})) << "nothing else is left";
  const json report = json::parse(content(path("report.json")));
  EXPECT_EQ(report.at("cells"), 2);
  EXPECT_EQ(report.at("measured"), 2);
  EXPECT_TRUE(report.at("complete").get<bool>()) << made.output;
  const json document = json::parse(content(table));
  EXPECT_TRUE(holds(document.at("measured").at("command"), "torii-info tune --ranks 2"));
  EXPECT_EQ(document.at("rows").size(), report.at("rows").size() + 3) << "the new rows, and the built-in ones";

  const std::string setting = "TORII_TUNE_FILE=" + table;
  const json shown = json_of({"tune"}, {setting});
  EXPECT_EQ(shown.at("origin"), table);
  const json plan = json_of({"plan", "allreduce", "--ranks", "2", "--bytes", "64"}, {setting});
  EXPECT_TRUE(holds(plan.at("why"), table)) << plan.at("why");
  const json doctor = json_of({"doctor", "--ranks", "2"}, {setting});
  const json& check =
      *std::ranges::find_if(doctor.at("checks"), [](const json& one) { return one.at("name") == "tune table"; });
  EXPECT_EQ(check.at("state"), "ok") << check << ": it was measured on this machine";
  EXPECT_TRUE(holds(check.at("found"), table)) << check;

  // Each row says what it serves, and each figure is one line.
  for (const json& row : report.at("rows")) EXPECT_GE(row.at("gain"), 1.03) << row;
  std::ifstream raw(path("raw.json"));
  int lines = 0;
  for (std::string line; std::getline(raw, line); ++lines) EXPECT_TRUE(json::parse(line).contains("table")) << line;
  EXPECT_GE(lines, 2);
}

TEST_F(Tune, EveryRowWasMeasuredInARowToo) {
  const Words command =
      with(with({kToriiInfo}, kBrief), {"--collectives", "gather,scatter,reduce,all_gather", "-b", "64", "-e", "64K",
                                        "-o", path("table"), "--json", path("report"), "--raw", path("raw")});
  // So few rounds find rows by their noise, though not in every run. On a busy machine the minute may end before the
  // last comparison; the rows that are written have had theirs.
  json rows = json::array();
  const double end_s = now_s() + 60;
  while (rows.empty()) {
    if (now_s() > end_s) GTEST_SKIP() << "the tuner found no row to measure in a row: this machine is too busy";
    const Outcome made = Process(command).wait(100);
    ASSERT_TRUE(made.code == 0 || made.code == 4) << made.code << ": " << made.output;
    rows = json::parse(content(path("report"))).at("rows");
  }
  for (const json& row : rows) {
    std::ifstream raw(path("raw"));
    int in_a_row = 0;
    for (std::string text; std::getline(raw, text);) {
      const json line = json::parse(text);
      in_a_row += line.at("timing") == "loop" && line.at("collective") == row.at("collective") &&
                  line.at("bytes") >= row.value("bytes_min", 0) && line.at("bytes") <= row.at("bytes_max");
    }
    EXPECT_GE(in_a_row, 1) << row;
  }
}

TEST_F(Tune, TheFileMayGoToStdout) {
  const Outcome made = run(with({"sh", "-c", "exec \"$0\" \"$@\" 2>/dev/null", kToriiInfo}, with(kSmall, {"-o", "-"})));
  ASSERT_EQ(made.code, 0) << made.output;
  EXPECT_EQ(json::parse(made.output).at("rows").back(), "built-in node") << made.output;
}

TEST_F(Tune, ChecksATable) {
  const std::string table = write("table.json", R"({"version": 1, "rows": [
    {"collective": "allreduce", "ranks": [1, 4], "bytes_max": null, "algorithm": "ring", "segment": 4096, "slots": 4,
     "window": 1}, "built-in node"]})");
  for (const bool by_flag : {true, false}) {
    const Outcome checked =
        by_flag ? torii_info(with(kSmall, {"--check", "--passes", "2", "--json", path("report"), "--tune-file", table}))
                : torii_info(with(kSmall, {"--check", "--passes", "2", "--json", path("report")}),
                             {"TORII_TUNE_FILE=" + table});
    const json report = json::parse(content(path("report")));
    EXPECT_EQ(checked.code, report.at("good").get<bool>() ? 0 : 1) << checked.output;
    EXPECT_TRUE(report.at("complete").get<bool>());
    EXPECT_EQ(report.at("table"), table);
    ASSERT_EQ(report.at("cells").size(), 2U);
    const json& cell = report.at("cells").back();
    EXPECT_EQ(cell.at("collective"), "allreduce");
    EXPECT_EQ(cell.at("auto"), "ring");
    EXPECT_EQ(cell.at("best_other"), "node");
    EXPECT_EQ(cell.at("passes"), 2);
    EXPECT_GE(cell.at("regret"), 1);
    EXPECT_TRUE(holds(checked.output, "regret: median ")) << checked.output;
  }
}

TEST_F(Tune, SettingsThatDecideAreIgnoredAndSaid) {
  const Outcome made = torii_info(with(kSmall, {"-o", path("table")}),
                                  {"TORII_ALGORITHM=binomial", "TORII_TRANSPORT=libfabric", "TORII_SEGMENT=1K",
                                   "TORII_TUNE_FILE=none", "TORII_TOPOLOGY=torus:7x7", "TORII_ENGINES=2"});
  ASSERT_EQ(made.code, 0) << made.output;
  for (const std::string setting : {"TORII_ALGORITHM=binomial", "TORII_TRANSPORT=libfabric", "TORII_SEGMENT=1K",
                                    "TORII_TUNE_FILE=none", "TORII_TOPOLOGY=torus:7x7"}) {
    EXPECT_TRUE(holds(made.output, setting + " is ignored")) << setting << ": " << made.output;
  }
  EXPECT_FALSE(holds(made.output, "TORII_ENGINES")) << made.output;
  EXPECT_EQ(json::parse(content(path("table"))).at("measured").at("settings").at("TORII_ENGINES"), "2");
}

TEST_F(Tune, RefusalsComeBeforeAnythingIsMeasured) {
  struct Refused {
    Words words;
    int code;
    std::string said;
    Words environment = {};
  };
  const std::string out = path("table");
  const Words make = {"tune", "-o", out, "--ranks", "2", "--oversubscribe"};
  const std::vector<Refused> all = {
      {{"tune", "-o", path("none/x")}, 2, "cannot write '" + path("none/x") + "': No such file or directory"},
      {{"tune", "-o", folder_}, 2, "cannot write '" + folder_.string() + "': Is a directory"},
      {with(make, {"--json", path("none/x")}), 2, "cannot write '" + path("none/x") + "'"},
      {with(make, {"--raw", path("none/x")}), 2, "cannot write '" + path("none/x") + "'"},
      {{"tune", "-o", "-", "--json", "-"}, 2, "-o - and --json - both want stdout"},
      {{"tune", "-o", out, "--check"}, 2, "--check writes no table"},
      {{"tune", "-o", out, "--tune-file", out}, 2, "-o compares with the built-in table"},
      {{"tune", "-o", out, "--passes", "3"}, 2, "--passes is for --check"},
      {{"tune", "-o", ""}, 2, "its value is empty"},
      {{"tune", "-o", out, "--minutes", "0"}, 2, "--minutes"},
      {{"tune", "-o", out, "--minutes", "nan"}, 2, "nan is no number"},
      {{"tune", "--minutes", "5"}, 2, "--minutes is for --check and -o FILE"},
      {{"tune", "--raw", out}, 2, "--raw is for --check and -o FILE"},
      {{"tune", "--check", "--tune-file", path("none")}, 2, "cannot read '" + path("none") + "'"},
      {{"tune", "--check"}, 2, "cannot read '" + path("none") + "'", {"TORII_TUNE_FILE=" + path("none")}},
      {{"tune", "--check", "--ranks", "two"}, 2, "--ranks is 'two'; it must be a list"},
      {{"tune", "--check", "--ranks", "1024"}, 3, "--ranks has 1024, but "},
      {with(make, {"--collectives", "gossip"}), 2, "--collectives: 'gossip' is no collective"},
      {with(make, {"--algorithms", "magic"}), 2, "--algorithms: 'magic' is no algorithm"},
      {with(make, {"-b", "1Q"}), 2, "-b is '1Q'; it must be a size"},
      {with(make, {"-b", "64K", "-e", "8"}), 2, "-e 8 is less than -b 64K"},
      {with(make, {"-f", "1"}), 2, "-f"},
      {make, 2, "TORII_ENGINES is '99'", {"TORII_ENGINES=99"}},
      {make, 3, "OMPI_COMM_WORLD_SIZE=4 says that this process is one of several", {"OMPI_COMM_WORLD_SIZE=4"}},
      {make, 3, "PMIX_RANK=0 says", {"PMIX_RANK=0"}},
      {make, 2, "PMI_SIZE is 'x'", {"PMI_SIZE=x"}},
  };
  for (const Refused& one : all) {
    const Outcome outcome = torii_info(one.words, one.environment);
    EXPECT_EQ(outcome.code, one.code) << one.said << ": " << outcome.output;
    EXPECT_TRUE(holds(outcome.output, one.said)) << one.said << ": " << outcome.output;
  }
  EXPECT_EQ(files(), Words{});
}

TEST_F(Tune, OneCpuIsRefusedWithoutOversubscription) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &set)) ++cpu;
  const Words bound = with({"taskset", "-c", std::to_string(cpu), kToriiInfo}, {"tune", "-o", path("table")});
  const Outcome outcome = run(bound);
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "1 CPU may be used here")) << outcome.output;
  EXPECT_EQ(files(), Words{});
}

TEST_F(Tune, RunsAloneInsideAJob) {
  const std::string torii_run = bin_dir() + "/torii-run";
  const Words tune = with(kSmall, {"-o", path("table")});
  const Outcome several = run(with({torii_run, "-n", "2", "--", kToriiInfo}, tune));
  EXPECT_EQ(several.code, 3) << several.output;
  EXPECT_TRUE(holds(several.output, "TORII_RANKS=2 says that this process is one of several ranks")) << several.output;
  EXPECT_EQ(files(), Words{});
  const Outcome alone = run(with({torii_run, "-n", "1", "--", kToriiInfo}, tune), {"OMPI_COMM_WORLD_SIZE=1"});
  EXPECT_EQ(alone.code, 0) << alone.output;
  EXPECT_EQ(files(), Words{"table"});
}

TEST_F(Tune, NothingMeasuredIsSaidAndAnOldFileIsKept) {
  const std::string table = write("table", "old");
  // All the time is reserved for starting and ending ranks.
  const Outcome outcome = torii_info({"tune", "--ranks", "2", "--oversubscribe", "--minutes", "0.001", "-o", table});
  EXPECT_EQ(outcome.code, 4) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "no cell was measured in 0.001 minutes")) << outcome.output;
  EXPECT_EQ(content(table), "old");
  EXPECT_EQ(files(), Words{"table"});
}

TEST_F(Tune, WhatWasMeasuredIsSavedWhenTimeIsOver) {
  // No machine measures 4096 ... 64 MiB by all algorithms in 3 s; which of the cells are missing depends on the time.
  const Outcome outcome =
      torii_info({"tune", "--ranks", "2", "--oversubscribe", "--minutes", "0.05", "-b", "4K", "-e", "64M", "-f", "2",
                  "--block-ms", "20", "-o", path("table"), "--json", path("report")});
  ASSERT_EQ(outcome.code, 4) << outcome.output;
  const json report = json::parse(content(path("report")));
  EXPECT_LT(report.at("measured"), report.at("cells"));
  EXPECT_FALSE(report.at("complete").get<bool>());
  EXPECT_TRUE(holds(outcome.output, "cells were not measured, because 0.05 minutes were over")) << outcome.output;
  EXPECT_EQ(json_of({"tune"}, {"TORII_TUNE_FILE=" + path("table")}).at("origin"), path("table"));
}

TEST_F(Tune, CtrlCEndsAllProcessesAndWritesNothing) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Process tune({kToriiInfo, "tune", "--ranks", "2", "--oversubscribe", "-o", path("table")});
    std::vector<pid_t> ranks;
    const double begun_s = now_s();
    while ((ranks = ranks_of(tune.pid())).size() < 2 && now_s() - begun_s < 30) sched_yield();
    ASSERT_EQ(ranks.size(), 2U);
    tune.kill(signal);
    const Outcome outcome = tune.wait();
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.output;
    for (const pid_t rank : ranks) EXPECT_EQ(kill(rank, 0), -1) << "rank " << rank << " is left";
    EXPECT_EQ(files(), Words{});
  }
}

}  // namespace
}  // namespace torii::tests
