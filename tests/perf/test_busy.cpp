// SPDX-License-Identifier: Apache-2.0
// perf/busy, busy_perf and perf/overlap: their command lines, and that a job's figures say what happened. Times are
// not judged.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/folder_test.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

const std::string kBusyScript = (std::filesystem::path(source_dir()) / "perf" / "busy").string();

class Busy : public FolderTest {
 protected:
  static Outcome script(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {kBusyScript, "--bin", bin_dir()});
    return run(arguments);
  }
  static Outcome program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), bin_dir() + "/busy_perf");
    return run(arguments);
  }
  static std::vector<nlohmann::json> rows(const std::string& file) {
    std::vector<nlohmann::json> all;
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }
};

TEST_F(Busy, EachKindOfCallHasItsFigures) {
  for (const char* kind : {"allreduce", "start", "persistent", "send"}) {
    const std::string file = path(kind);
    const Outcome outcome = program({"--ranks", "2", "--seconds", "0.05", "--kind", kind, "--json", file});
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find(" calls, mean "), std::string::npos) << outcome.output;
    const std::vector<nlohmann::json> found = rows(file);
    ASSERT_EQ(found.size(), 1U);
    const nlohmann::json& row = found[0];
    EXPECT_EQ(row["kind"], kind);
    EXPECT_GT(row["calls"], 0);
    EXPECT_LE(row["median_us"], row["p99_us"]);
    EXPECT_LE(row["p99_us"], row["p99_9_us"]);
    EXPECT_LE(row["slow_calls"], row["calls"]);
    EXPECT_LE(row["slow_on_one_cpu"], row["slow_calls"]);
    for (const char* of_ranks : {"hops", "moves", "slow_switches"}) EXPECT_EQ(row[of_ranks].size(), 2U) << of_ranks;
  }
}

/// Every call is slow if it takes more than a microsecond, and ranks on one CPU need more.
TEST_F(Busy, SlowCallsOfRanksOnOneCpuSaySo) {
  const std::string file = path("rows");
  const Outcome outcome =
      program({"--ranks", "2", "--seconds", "0.05", "--slow", "1", "--cpus", "0,0", "--json", file, "--setting", "x"});
  if (outcome.output.find("cannot be bound") != std::string::npos) GTEST_SKIP() << "CPU 0 is not for this process";
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const nlohmann::json row = rows(file).at(0);
  EXPECT_EQ(row["setting"], "x");
  EXPECT_GT(row["slow_calls"], 0);
  EXPECT_EQ(row["slow_on_one_cpu"], row["slow_kept"]);
  EXPECT_EQ(row["hops"], nlohmann::json({0, 0}));
  ASSERT_FALSE(row["slow_calls_first"].empty());
  EXPECT_EQ(row["slow_calls_first"][0]["cpus"], nlohmann::json({0, 0}));
  EXPECT_GT(row["slow_switches"][0].get<int>() + row["slow_switches"][1].get<int>(), 0);
}

TEST_F(Busy, TheScriptRunsStatesAndWaysByTurns) {
  const std::string file = path("rows");
  const Outcome outcome =
      script({"--jobs", "2", "--seconds", "0.05", "--states", "one-cpu,bound-1,free-2,free-1-apart", "--json", file});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(rows(file).size(), 16U);
  EXPECT_NE(outcome.output.find("  same\n"), std::string::npos) << "torii-run leaves ranks in its session";
  EXPECT_EQ(rows(file)[0]["sessions"], nlohmann::json({getsid(0), getsid(0)}));
  for (const char* line : {"# command perf/busy", "one-cpu ", "bound-1 ", "free-2 ", "free-1-apart ", "torii,HOP=0 "}) {
    EXPECT_NE(outcome.output.find(line), std::string::npos) << outcome.output;
  }
}

/// The running processes that have this in their environment.
int count_with(const std::string& variable) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    count += holds(all, variable) ? 1 : 0;
  }
  return count;
}

TEST_F(Busy, TheScriptEndsAllThatItHasStartedIfItIsTerminated) {
  const std::string mark = "TORII_TEST_BUSY=" + path("mark");
  constexpr int kAll = 9;  // the script; a shell, two limits and two loops; a limit, and the ranks
  Process running({kBusyScript, "--bin", bin_dir(), "--jobs", "1", "--seconds", "100", "--states", "free-2"}, {mark});
  const double end_s = now_s() + 20;
  while (count_with(mark) < kAll && now_s() < end_s) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(count_with(mark), kAll);
  running.kill(SIGTERM);
  EXPECT_EQ(running.wait().code, 128 + SIGTERM);
  const double gone_s = now_s() + 20;
  while (count_with(mark) != 0 && now_s() < gone_s) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(count_with(mark), 0);
}

TEST_F(Busy, AnMpiTakesItsTurnToo) {
  if (access((bin_dir() + "/busy_perf.openmpi").c_str(), X_OK) != 0) GTEST_SKIP() << "built without Open MPI";
  for (const char* kind : {"allreduce", "send"}) {
    const Outcome outcome =
        script({"--jobs", "1", "--seconds", "0.05", "--states", "free-1", "--way", "openmpi", "--kind", kind});
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("free-1         openmpi"), std::string::npos) << outcome.output;
  }
}

/// Its starter gives each rank a session of its own, so it is not in the state that the others are in.
TEST_F(Busy, RanksInSessionsOfTheirOwnAreTold) {
  if (access((bin_dir() + "/busy_perf.mpich").c_str(), X_OK) != 0) GTEST_SKIP() << "built without MPICH";
  const Outcome outcome = script({"--jobs", "1", "--seconds", "0.05", "--states", "free-0", "--way", "mpich"});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("  own\n"), std::string::npos) << outcome.output;
}

TEST_F(Busy, BadCommandLinesAreRefusedWithTheReason) {
  struct Case {
    std::vector<std::string> arguments;
    std::string reason;
  };
  for (const auto& [arguments, reason] : {
           Case{{"--states", "idle"}, "--states 'idle' is not one-cpu, bound-N, free-N or free-N-apart"},
           Case{{"--states", "bound-2-apart"}, "--states 'bound-2-apart' is not"},
           Case{{"--way", "lam"}, "--way 'lam' is neither torii, openmpi nor mpich, nor the name of an --mpi"},
           Case{{"--way", "openmpi,HOP=0"}, "--way 'openmpi,HOP=0': only torii has settings"},
           Case{{"--json", "no_such_folder/x"}, "cannot write 'no_such_folder/x': No such file or directory"},
           Case{{"--ranks", "1"}, "--ranks must be at least 2, --jobs at least 1, --seconds above 0"},
       }) {
    const Outcome outcome = script(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(reason), std::string::npos) << outcome.output;
  }
  const Outcome none = run({kBusyScript, "--bin", path("none")});
  EXPECT_EQ(none.code, 3) << none.output;
  EXPECT_NE(none.output.find("there is no busy_perf in"), std::string::npos) << none.output;
  const Outcome failed = script({"--jobs", "1", "--states", "free-0", "--way", "torii,HOP=2"});
  EXPECT_EQ(failed.code, 1) << failed.output;
  EXPECT_NE(failed.output.find("# FAILED with code 2: free-0, torii,HOP=2"), std::string::npos) << failed.output;
  for (const auto& [arguments, reason] : {
           Case{{"--ranks", "3", "--kind", "send"}, "--kind send needs 2 ranks"},
           Case{{"--ranks", "2", "--cpus", "0"}, "--cpus '0' has 1 CPUs for 2 ranks"},
           Case{{"--ranks", "2", "--cpus", "x,y"}, "cannot be bound to CPU 'x'"},
       }) {
    const Outcome outcome = program(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(reason), std::string::npos) << outcome.output;
  }
}

/// perf/overlap and the program that it starts.
class Overlap : public FolderTest {
 protected:
  static Outcome script(std::vector<std::string> arguments) {
    const std::string place = (std::filesystem::path(source_dir()) / "perf" / "overlap").string();
    arguments.insert(arguments.begin(), {place, "--bin", bin_dir()});
    return run(arguments);
  }
};

TEST_F(Overlap, BothSidesHaveTheirFigures) {
  const Outcome outcome = script({"--turns", "1", "--repeats", "3"});
  if (outcome.code == 3) GTEST_SKIP() << outcome.output;  // built without Open MPI, or without the component
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  for (const char* line : {"# command perf/overlap", "\nlate_0 ", "\nlate_1000 ", "\nlate_5000 "}) {
    EXPECT_NE(outcome.output.find(line), std::string::npos) << outcome.output;
  }
}

TEST_F(Overlap, BadCommandLinesAreRefusedWithTheReason) {
  for (const auto& [arguments, reason] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--turns", "0"}, "--turns 0: a number from 1 to 999999"},
           {{"--ranks", "3"}, "--ranks 3: an even number"},
           {{"--ranks"}, "--ranks needs a value"},
           {{"--rank", "2"}, "'--rank' is not understood"}}) {
    const Outcome outcome = script(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(reason), std::string::npos) << outcome.output;
  }
  const Outcome none = script({"--bin", path("none")});
  EXPECT_EQ(none.code, 3) << none.output;
  EXPECT_NE(none.output.find("there is no mpi_overlap in"), std::string::npos) << none.output;
}

}  // namespace
}  // namespace torii::tests
