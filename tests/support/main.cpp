// SPDX-License-Identifier: Apache-2.0
// The main function of the test programs: that of GoogleTest, and --files=PATH,...: only tests that stand in these
// files, given from the root of the sources. Tests of a folder share a program, and an entry of ctest names its files.
// Of these, a short run of an entry with SHARES has a part.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr std::string_view kFlag = "--files=";

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    parts.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

/// The compiler may have been called with another path to the file, which ends in the same way.
bool stands_in(const testing::TestInfo& test, const std::vector<std::string>& files) {
  const std::string_view path = test.file();
  return std::any_of(files.begin(), files.end(), [&](const std::string& file) {
    return path == file || (path.ends_with(file) && path[path.size() - file.size() - 1] == '/');
  });
}

/// The user's filter without the tests that stand in other files, and those that other runs have. Returns the number of
/// tests that stand in these files.
int leave_out_others(const std::vector<std::string>& files) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string others;
  int count = 0;
  int left = 0;
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    std::string names;
    int here = 0;
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const testing::TestInfo& test = *suite.GetTestInfo(k);
      const std::string name = std::string(suite.name()) + "." + test.name();
      const bool is_here = stands_in(test, files);
      here += is_here ? 1 : 0;
      const bool is_left = is_here && !is_case_of_run(name);
      left += is_left ? 1 : 0;
      if (!is_here || is_left) names += ":" + name;
    }
    others += here == 0 ? std::string(":") + suite.name() + ".*" : names;
    count += here;
  }
  if (left != 0) std::printf("%d of %d tests are left to other runs\n", left, count);
  std::string filter = GTEST_FLAG_GET(filter);
  if (!others.empty()) filter += (filter.find('-') == std::string::npos ? "-" : ":") + others.substr(1);
  GTEST_FLAG_SET(filter, filter);
  return count;
}

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    (void)seeds_of("", 0);  // what is wrong with the list or the variables is said before anything runs
    (void)is_case_of_run("");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kFlag)) {
      std::fprintf(stderr, "%s: unknown argument '%s'; see --help for GoogleTest's, or --files=PATH,...\n", argv[0],
                   argv[i]);
      return 2;
    }
    if (leave_out_others(split(argument.substr(kFlag.size()))) == 0) {
      std::fprintf(stderr, "%s: no test stands in %s\n", argv[0], argv[i]);
      return 2;
    }
  }
  if (const char* const number = std::getenv("TORII_TEST_RUN"); number != nullptr) {
    std::printf("TORII_TEST_RUN=%s\n", number);
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace torii::tests

int main(int argc, char** argv) { return torii::tests::run(argc, argv); }
