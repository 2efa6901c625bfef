// SPDX-License-Identifier: Apache-2.0
// Lists of CPUs as the kernel writes them, and the NUMA node that a rank is bound to, on planted machines.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "runtime/devices/cpus.hpp"
#include "tests/support/test_run.hpp"

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
  for (const tests::Seed& seed : tests::seeds_of("test_cpus", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
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
}

class PlantedNodes : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(system_); }
  void plant(const std::string& path, const std::string& text) {
    const std::filesystem::path file = system_ / "devices/system/node" / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  std::filesystem::path system_ = std::filesystem::path(testing::TempDir()) / "torii_test_planted_nodes";
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

TEST_F(PlantedNodes, TheLastCacheIsShared) {
  const auto plant_cache = [this](int cpu, int index, int level, const std::string& cpus) {
    const std::filesystem::path cpus_folder = std::filesystem::path("..") / "cpu" / ("cpu" + std::to_string(cpu));
    const std::filesystem::path folder = cpus_folder / "cache" / ("index" + std::to_string(index));
    plant(folder / "level", std::to_string(level));
    plant(folder / "shared_cpu_list", cpus);
  };
  plant("online", "0");
  for (const int cpu : {4, 5}) {
    plant_cache(cpu, 0, 1, std::to_string(cpu));
    plant_cache(cpu, 1, 1, std::to_string(cpu));
    plant_cache(cpu, 2, 2, std::to_string(cpu));
    plant_cache(cpu, 3, 3, "4-7,12-15");
  }
  plant_cache(8, 0, 1, "8");
  plant_cache(8, 1, 2, "8-9");
  EXPECT_EQ(shared_cache({4}, system_), 4);
  EXPECT_EQ(shared_cache({5}, system_), 4);
  EXPECT_EQ(shared_cache({4, 5, 13}, system_), 4);
  EXPECT_EQ(shared_cache({4, 8}, system_), std::nullopt) << "bound to CPUs beyond one cache";
  EXPECT_EQ(shared_cache({8}, system_), std::nullopt) << "a second-level cache belongs to a core";
  EXPECT_EQ(shared_cache({9}, system_), std::nullopt) << "nothing is known";
  EXPECT_EQ(shared_cache({}, system_), std::nullopt);
}

TEST(AllowedCpus, AreAscending) {
  const CpuList cpus = allowed_cpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_TRUE(std::ranges::is_sorted(cpus));
}

}  // namespace
}  // namespace torii
