// SPDX-License-Identifier: Apache-2.0
// Plans, selections and result bits are those of the committed files. A refactoring changes none of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/golden/cells.hpp"
#include "tests/golden/golden_file.hpp"

namespace torii::golden {
namespace {

class Golden : public ::testing::Test {
 protected:
  /// Settings in the environment choose algorithms and wires, so all are removed.
  static void SetUpTestSuite() {
    (void)is_writing();
    std::vector<std::string> names;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      if (text.starts_with("TORII_")) names.emplace_back(text.substr(0, text.find('=')));
    }
    for (const std::string& name : names) unsetenv(name.c_str());
  }
};

TEST_F(Golden, Plans) {
  check_file("plans.txt",
             "The plans of all ranks and the declared order: collective, algorithm, topology, root, determinism, wire, "
             "tuning = XXH3-64. Each refusal text is listed once per algorithm and collective.",
             plan_lines());
}

TEST_F(Golden, Selection) {
  check_file("selection.txt",
             "What the built-in table chooses: collective, topology, determinism, bytes, fabric = algorithm, tuning, "
             "whether a row or a model decided.",
             selection_lines());
}

TEST_F(Golden, Results) {
  const Lines lines = result_lines();
  const auto differing =
      std::count_if(lines.begin(), lines.end(), [](const Line& line) { return line.value.starts_with("shared"); });
  EXPECT_EQ(differing, 0) << "calls whose bits in the simulator are not those over shared memory";
  check_file("results.txt",
             "The bits that a forced algorithm computes: algorithm, topology, determinism, collective, type, elements "
             "= XXH3-64 of the results of all ranks, over shared memory and in the simulator.",
             lines);
}

}  // namespace
}  // namespace torii::golden
