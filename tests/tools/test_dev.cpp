// SPDX-License-Identifier: Apache-2.0
// The script ./dev: arguments that it refuses, and the table of tests that `./dev quick` runs for changed files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/folder_test.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = TORII_TEST_SOURCE_DIR;
const std::string kDev = (kRoot / "dev").string();

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The rows of tests/quick_areas.txt: a path and its tests.
std::vector<std::pair<std::string, std::string>> rows_of_quick() {
  std::istringstream table(read((kRoot / "tests/quick_areas.txt").string()));
  std::vector<std::pair<std::string, std::string>> rows;
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string path;
    std::string tests;
    if (words >> path >> tests) rows.emplace_back(path, tests);
  }
  return rows;
}

/// Every name that the CMakeLists.txt below these folders give to a test.
std::vector<std::string> names_of_tests() {
  static const std::regex name(R"((?:torii_test|add_test)\(\s*NAME ([\w${}]+))");
  static const std::regex python_name(R"(\ntorii_(python|pytorch)_test\((\w+))");
  std::vector<std::string> names;
  for (const char* folder : {"tests", "perf", "examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (entry.path().filename() != "CMakeLists.txt") continue;
      const std::string text = read(entry.path());
      for (std::sregex_iterator at(text.begin(), text.end(), name); at != std::sregex_iterator(); ++at) {
        names.push_back((*at)[1]);
      }
      for (std::sregex_iterator at(text.begin(), text.end(), python_name); at != std::sregex_iterator(); ++at) {
        names.push_back((*at)[1].str() + "_" + (*at)[2].str());
      }
    }
  }
  return names;
}

bool matches_any(const std::string& pattern, const std::vector<std::string>& names) {
  const std::regex expression(pattern);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return std::regex_match(name, expression); });
}

/// Whether there is a folder of this path, or a file or folder whose path begins so.
bool leads_somewhere(const std::string& prefix) {
  if (prefix.ends_with('/')) return fs::is_directory(kRoot / prefix);
  const fs::path path = kRoot / prefix;
  const auto begins = [&](const auto& entry) {
    return entry.path().filename().string().starts_with(path.filename().string());
  };
  return std::any_of(fs::directory_iterator(path.parent_path()), fs::directory_iterator(), begins);
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
  const fs::path packages = kRoot / "tests/packages";
  refuses({packages / "fresh_root"}, "usage: tests/packages/fresh_root PACKAGES");
  refuses({packages / "embedders", "--all"}, "usage: tests/packages/embedders PREFIX");
  refuses({kRoot / "tests/abi/compare", "--all"}, "compare: unknown option --all");
}

TEST(Dev, TableOfQuickNamesWhatThereIs) {
  const auto rows = rows_of_quick();
  const auto names = names_of_tests();
  ASSERT_GT(rows.size(), 20u);
  ASSERT_GT(names.size(), 50u);
  for (const auto& [prefix, tests] : rows) {
    EXPECT_TRUE(leads_somewhere(prefix)) << "tests/quick_areas.txt names " << prefix << ", which does not exist";
    // Alternatives at the top; those in parentheses are taken together.
    const std::regex alternative(R"((?:[^|(]|\([^)]*\))+)");
    for (std::sregex_iterator at(tests.begin(), tests.end(), alternative); at != std::sregex_iterator(); ++at) {
      EXPECT_TRUE(matches_any(at->str(), names)) << prefix << ": no test is called " << at->str();
    }
  }
}

/// A new folder of the library comes with a row of the table, or the table says less than it seems to.
TEST(Dev, TableOfQuickHasTheTransportsAndTools) {
  const auto rows = rows_of_quick();
  for (const char* parent : {"transports", "tools", "plugins"}) {
    for (const auto& entry : fs::directory_iterator(kRoot / parent)) {
      if (!entry.is_directory()) continue;
      const std::string prefix = std::string(parent) + "/" + entry.path().filename().string() + "/";
      EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.first == prefix; }))
          << prefix << " has no row in tests/quick_areas.txt";
    }
  }
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
  Outcome run_test(const std::string& configuration_prints) {
    fs::copy_file(kDev, folder_ / "dev", fs::copy_options::overwrite_existing);
    for (const char* name : {"clang-format-14", "codespell", "reuse"}) write_program(name, "");
    write_program("dpkg-query", "install ok installed");
    write_program("cmake", configuration_prints);
    write_program("ctest", "100% tests passed");
    for (const char* preset : {"release", "asan", "tsan"}) fs::create_directories(folder_ / "build" / preset);
    const std::string path = (folder_ / "programs").string() + ":" + std::getenv("PATH");
    return run({(folder_ / "dev").string(), "test"}, {"PATH=" + path});
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
  const Outcome outcome = run_test("-- torii: with Gloo");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "tsan: 100% tests passed")) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
