// SPDX-License-Identifier: Apache-2.0
// slot_copy_perf: its copies are right, and bad command lines are refused.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/folder_test.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

using Json = nlohmann::json;

class SlotCopyTest : public FolderTest {
 protected:
  static std::vector<Json> rows(const std::string& path) {
    std::ifstream file(path);
    std::vector<Json> list;
    for (std::string line; std::getline(file, line);) list.push_back(Json::parse(line));
    return list;
  }
};

TEST_F(SlotCopyTest, CopiesAreRight) {
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
