// SPDX-License-Identifier: Apache-2.0
// The commands of ./dev: arguments that they refuse, the labels by which `./dev quick` finds tests for changed files,
// and what `./dev test` says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/folder_test.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = source_dir();
const std::string kDev = (kRoot / "dev").string();

/// The paths of which `./dev quick` runs tests when a file there has changed: the labels "touches:PATH".
std::vector<std::string> touched_paths() {
  const Outcome outcome = run({"ctest", "--test-dir", build_dir(), "--print-labels"});
  std::istringstream lines(outcome.output);
  std::vector<std::string> paths;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("touches:");
    if (at != std::string::npos) paths.push_back(line.substr(at + std::string("touches:").size()));
  }
  return paths;
}

TEST(Dev, RefusesWhatItDoesNotKnow) {
  const auto refuses = [](const std::vector<std::string>& command, const std::string& reason) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_TRUE(holds(outcome.output, reason)) << outcome.output;
  };
  refuses({kDev}, "a command is missing");
  refuses({kDev, "quickly"}, "unknown command 'quickly'");
  refuses({kDev, "quick", "--full"}, "quick: unknown argument '--full'");
  refuses({kDev, "quick", "tests", "api"}, "quick: unknown argument 'tests api'");
  refuses({kDev, "package", "--tried"}, "package: unknown argument '--tried'");
  refuses({kDev, "verbs", "--all"}, "verbs: unknown argument '--all'");
  refuses({kDev, "verbs", "libfabric-killed", "tcp-*"}, "verbs: no case is called 'tcp-*'; ./dev verbs --list prints");
  const fs::path packages = kRoot / "tests/packages";
  refuses({packages / "fresh_root"}, "usage: tests/packages/fresh_root PACKAGES");
  refuses({packages / "embedders", "--all"}, "usage: tests/packages/embedders PREFIX");
  refuses({kRoot / "tests/abi/compare", "--all"}, "compare: unknown option --all");
}

/// A new folder of the library comes with tests that touch it, or `./dev quick` runs less than it seems to. What a
/// label names exists: cmake/torii_test.cmake looks.
TEST(Dev, TestsTouchTheTransportsAndTools) {
  const auto paths = touched_paths();
  ASSERT_GT(paths.size(), 100u);
  for (const char* parent : {"transports", "tools", "plugins"}) {
    for (const auto& entry : fs::directory_iterator(kRoot / parent)) {
      if (!entry.is_directory()) continue;
      const std::string folder = std::string(parent) + "/" + entry.path().filename().string() + "/";
      EXPECT_TRUE(std::any_of(paths.begin(), paths.end(), [&](const auto& path) { return path.starts_with(folder); }))
          << "no test says TOUCHES " << folder;
    }
  }
}

/// A test runs if its own source has changed.
TEST(Dev, TestsTouchTheirSources) {
  const auto paths = touched_paths();
  for (const char* own : {"tests/tools/test_dev.cpp", "tests/faults/test_faults.cpp"}) {
    EXPECT_TRUE(std::find(paths.begin(), paths.end(), own) != paths.end()) << own;
  }
}

TEST(Dev, TimesNeedsARun) {
  const fs::path times = kRoot / "tools/dev/times";
  EXPECT_TRUE(holds(run({times, "--all"}).output, "times: unknown argument '--all'"));
}

/// A copy of ./dev beside programs that do nothing but print, in place of those that it calls.
class DevAlone : public FolderTest {
 protected:
  void write_program(const std::string& name, const std::string& prints) {
    fs::create_directories(folder_ / "programs");
    const fs::path program = folder_ / "programs" / name;
    std::ofstream(program) << "#!/bin/sh\necho '" << prints << "'\n";
    fs::permissions(program, fs::perms::owner_all);
  }
  Outcome run_test(const std::string& configuration_prints, const std::vector<std::string>& environment = {}) {
    return run_dev("test", configuration_prints, environment);
  }
  Outcome run_dev(const std::string& command, const std::string& configuration_prints,
                  const std::vector<std::string>& environment = {}) {
    fs::copy_file(kDev, folder_ / "dev", fs::copy_options::overwrite_existing);
    fs::create_directories(folder_ / "tools");
    fs::copy(kRoot / "tools/dev", folder_ / "tools/dev",
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    for (const char* name : {"clang-format-14", "codespell", "reuse"}) write_program(name, "");
    write_program("dpkg-query", "install ok installed");
    write_program("cmake", configuration_prints);
    write_program("ctest", "100% tests passed");
    for (const char* preset : {"release", "asan", "tsan"}) fs::create_directories(folder_ / "build" / preset);
    const std::string path = (folder_ / "programs").string() + ":" + std::getenv("PATH");
    std::vector<std::string> changed = environment;
    changed.push_back("PATH=" + path);
    return run({(folder_ / "dev").string(), command}, changed);
  }
};

TEST_F(DevAlone, TestFailsIfAPartIsLeftOut) {
  const Outcome outcome = run_test("-- torii: left out: the test beside Gloo (TORII_WITH_GLOO is OFF)");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "left out: the test beside Gloo")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "nothing may be left out")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "dev: FAILED: release: build")) << outcome.output;
}

TEST_F(DevAlone, TestPassesIfAllIsBuilt) {
  const Outcome outcome = run_test("-- torii: left to --full: thread sanitizer: test_join");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "tsan: 100% tests passed")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "\nthread sanitizer: test_join\n")) << outcome.output;
}

TEST_F(DevAlone, QuickBuildsAndTests) {
  const Outcome outcome = run_dev("quick", "-- torii: with Gloo");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "label quick: 0 tests")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "s  release: quick tests")) << outcome.output;
}

TEST_F(DevAlone, TestRefusesARunThatIsNoNumber) {
  const Outcome outcome = run_test("-- torii: with Gloo", {"TORII_TEST_RUN=abc"});
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "TORII_TEST_RUN is 'abc'; it must be a number")) << outcome.output;
}

/// A folder without a repository has run 0; a run that is asked for keeps its number.
TEST_F(DevAlone, TestSaysItsSeeds) {
  const Outcome outcome = run_test("-- torii: with Gloo", {"TORII_TEST_RUN="});
  EXPECT_TRUE(holds(outcome.output, "seeds of run 0;")) << outcome.output;
  const Outcome asked = run_test("-- torii: with Gloo", {"TORII_TEST_RUN=77"});
  EXPECT_TRUE(holds(asked.output, "TORII_TEST_RUN=77 ./dev test repeats them")) << asked.output;
}

/// Its cases are a list that the host and the machines read.
TEST(Dev, VerbsListsItsCases) {
  const Outcome outcome = run({kDev, "verbs", "--list"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "\nlibfabric-killed          kill -9 of rank 1: ")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "\nucx-scan                  scan_perf, 4 B to 4 MiB")) << outcome.output;
}

TEST_F(DevAlone, VerbsRefusesOtherProcessors) {
  write_program("dpkg", "arm64");
  const Outcome outcome = run_dev("verbs", "");
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "dev: verbs: this is arm64; the machines are amd64")) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
