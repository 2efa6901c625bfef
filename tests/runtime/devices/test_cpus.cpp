// SPDX-License-Identifier: Apache-2.0
// Lists of CPUs as the kernel writes them, and the NUMA node that a rank is bound to, on planted machines.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "runtime/devices/cpus.hpp"

namespace torii {
namespace {

TEST(CpuLists, AreRangesAndNumbers) {
  EXPECT_EQ(parse_cpu_list("0"), (CpuList{0}));
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11"), (CpuList{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list(""), (CpuList{}));
  for (const char* wrong :
       {"a", "1-", "-1", "3-1", "1,", ",1", "1,,2", "1 2", "2,1", "1-3,3", "0-99999999", "1-2-3", "99999999999999"}) {
    EXPECT_EQ(parse_cpu_list(wrong), (CpuList{})) << wrong;
  }
}

TEST(CpuLists, AnyTextGivesAnAscendingListOrNothing) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  constexpr char kLetters[] = "0123456789-,,- x";
  int read = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text(1 + random() % 8, ' ');
    for (char& letter : text) letter = kLetters[random() % (sizeof(kLetters) - 1)];
    const CpuList list = parse_cpu_list(text);
    read += list.empty() ? 0 : 1;
    EXPECT_TRUE(std::ranges::is_sorted(list)) << text;
    EXPECT_TRUE(std::ranges::adjacent_find(list) == list.end()) << text;
  }
  EXPECT_GT(read, 100);
}

class PlantedNodes : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(system_); }
  void plant(const std::string& path, const std::string& text) {
    const std::filesystem::path file = system_ / "devices/system/node" / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  std::filesystem::path system_ = std::filesystem::path(testing::TempDir()) / "torii_planted_nodes";
};

TEST_F(PlantedNodes, HomeIsTheNodeThatHoldsAllCpus) {
  plant("online", "0-1,3");
  plant("node0/cpulist", "0-3");
  plant("node1/cpulist", "4-7");
  plant("node3/cpulist", "");
  EXPECT_EQ(home_node({0}, system_), 0);
  EXPECT_EQ(home_node({4, 5, 7}, system_), 1);
  EXPECT_EQ(home_node({3, 4}, system_), std::nullopt) << "on both";
  EXPECT_EQ(home_node({9}, system_), std::nullopt);
  EXPECT_EQ(home_node({}, system_), std::nullopt);
}

TEST_F(PlantedNodes, NoHomeWithoutAChoice) {
  plant("online", "0");
  plant("node0/cpulist", "0-3");
  EXPECT_EQ(home_node({0}, system_), std::nullopt) << "one node only";
  EXPECT_EQ(home_node({0}, system_ / "nothing"), std::nullopt);
}

TEST(AllowedCpus, AreAscending) {
  const CpuList cpus = allowed_cpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_TRUE(std::ranges::is_sorted(cpus));
}

}  // namespace
}  // namespace torii
