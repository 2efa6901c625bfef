// SPDX-License-Identifier: Apache-2.0
// What planted machines, control groups of both versions and commit limits leave.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/platform.hpp"
#include "runtime/devices/memory_limits.hpp"

namespace torii {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

/// A machine with 4 GiB available and 1 GiB of swap, in a folder of its own.
class PlantedLimits : public ::testing::Test {
 protected:
  PlantedLimits() {
    char name[] = "torii_test_limits_XXXXXX";
    root_ = fs::absolute(fs::temp_directory_path() / mkdtemp((fs::temp_directory_path() / name).string().data()));
    plant_memory("");
    plant("proc/sys/vm/overcommit_memory", "0\n");
  }
  ~PlantedLimits() override { fs::remove_all(root_); }

  void plant(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void plant_memory(const std::string& more) {
    plant("proc/meminfo",
          "MemTotal:        8388608 kB\nMemFree:          100000 kB\nMemAvailable:    4194304 kB\n"
          "SwapTotal:       1048576 kB\nSwapFree:         524288 kB\n" +
              more);
  }
  void plant_unified(const std::string& path, const std::string& mounted = "") {
    plant("proc/self/cgroup", "0::/" + path + "\n");
    plant("proc/self/mountinfo", "22 1 8:1 / / rw - ext4 disk rw\n35 22 0:30 /" + mounted +
                                     " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }

  fs::path root_;
};

TEST_F(PlantedLimits, MemoryAndSwap) {
  const MemoryLimits limits(root_);
  ASSERT_TRUE(limits.machine());
  EXPECT_EQ(limits.machine()->bytes, (4096 + 512) * kMiB);
  EXPECT_EQ(limits.machine()->limit_bytes, (8192 + 1024) * kMiB);
  EXPECT_FALSE(limits.group());
  EXPECT_FALSE(limits.commit());
  EXPECT_EQ(limits.left().bytes, (4096 + 512) * kMiB);
  EXPECT_EQ(limits.left().limit, "the machine's memory");
}

TEST_F(PlantedLimits, WithoutFilesNothingIsLimited) {
  const MemoryLimits limits(root_ / "nothing");
  EXPECT_FALSE(limits.machine());
  EXPECT_FALSE(limits.group());
  EXPECT_FALSE(limits.commit());
  EXPECT_EQ(limits.left().bytes, SIZE_MAX);
}

TEST_F(PlantedLimits, TheCommitLimitHoldsInMode2Only) {
  plant_memory("CommitLimit:    1000000 kB\nCommitted_AS:   900000 kB\n");
  EXPECT_FALSE(MemoryLimits(root_).commit());
  plant("proc/sys/vm/overcommit_memory", "2\n");
  const MemoryLimits limits(root_);
  ASSERT_TRUE(limits.commit());
  EXPECT_EQ(limits.commit()->bytes, 100'000 * kKiB);
  EXPECT_EQ(limits.left().limit, "the commit limit of 1024000000 bytes (vm.overcommit_memory is 2)");
  plant_memory("CommitLimit:    1000000 kB\nCommitted_AS:   1900000 kB\n");
  EXPECT_EQ(limits.left().bytes, 0U) << "root may exceed it";
}

TEST_F(PlantedLimits, AGroupOfVersion2AndThoseAboveIt) {
  plant_unified("jobs/one");
  plant("sys/fs/cgroup/jobs/one/cgroup.procs", "1\n");
  const MemoryLimits limits(root_);
  EXPECT_FALSE(limits.group());
  plant("sys/fs/cgroup/jobs/one/memory.max", "max\n");
  EXPECT_FALSE(limits.group());
  plant("sys/fs/cgroup/jobs/one/memory.max", "314572800\n");
  plant("sys/fs/cgroup/jobs/one/memory.current", "209715200\n");
  plant("sys/fs/cgroup/jobs/one/memory.stat", "anon 1000\ninactive_file 31457280\nactive_file 10485760\nshmem 5\n");
  plant("sys/fs/cgroup/jobs/one/memory.swap.max", "0\n");
  plant("sys/fs/cgroup/jobs/one/memory.swap.current", "0\n");
  ASSERT_TRUE(limits.group());
  EXPECT_EQ(limits.group()->bytes, (100 + 40) * kMiB) << "pages of files can be dropped";
  EXPECT_EQ(limits.group()->limit_bytes, 300 * kMiB);
  EXPECT_EQ(limits.left().limit, "the control group's limit of 314572800 bytes (" +
                                     (root_ / "sys/fs/cgroup/jobs/one/memory.max").string() + ")");
  plant("sys/fs/cgroup/jobs/one/memory.swap.max", "max\n");
  EXPECT_EQ(limits.group()->bytes, (140 + 512) * kMiB) << "as far as the machine has swap";
  // The group above has less.
  plant("sys/fs/cgroup/jobs/memory.max", "314572800\n");
  plant("sys/fs/cgroup/jobs/memory.current", "314572000\n");
  plant("sys/fs/cgroup/jobs/memory.swap.max", "0\n");
  EXPECT_EQ(limits.left().bytes, 800U);
}

TEST_F(PlantedLimits, AContainerSeesItsOwnGroupMounted) {
  plant_unified("docker/abc", "docker/abc");
  plant("sys/fs/cgroup/memory.max", "1048576\n");
  plant("sys/fs/cgroup/memory.swap.max", "0\n");
  EXPECT_EQ(MemoryLimits(root_).left().bytes, kMiB);
  plant_unified("../elsewhere");
  EXPECT_EQ(MemoryLimits(root_).left().bytes, kMiB) << "a group outside the name space: what is mounted counts";
}

TEST_F(PlantedLimits, AGroupOfVersion1) {
  plant("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/jobs\n0::/y\n");
  plant("proc/self/mountinfo",
        "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n");
  plant("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  plant("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "104857600\n");
  plant("sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "62914560\n");
  plant("sys/fs/cgroup/memory/jobs/memory.stat",
        "inactive_file 1\ntotal_inactive_file 10485760\ntotal_active_file 0\n");
  const MemoryLimits limits(root_);
  EXPECT_EQ(limits.left().bytes, (50 + 512) * kMiB) << "all swap";
  plant("sys/fs/cgroup/memory/jobs/memory.memsw.limit_in_bytes", "125829120\n");
  plant("sys/fs/cgroup/memory/jobs/memory.memsw.usage_in_bytes", "83886080\n");
  EXPECT_EQ(limits.left().bytes, 50 * kMiB) << "memory and swap together";
  EXPECT_NE(limits.left().limit.find("jobs/memory.limit_in_bytes"), std::string::npos);
}

TEST(MemoryLimits, OfASimulationAreNeverOld) {
  class Simulation : public Platform {
   public:
    std::optional<std::size_t> memory_left_bytes() noexcept override { return left_bytes; }
    std::size_t left_bytes = 0;
  } simulation;
  set_platform(&simulation);
  for (const std::size_t bytes : {5 * kMiB, 3 * kMiB}) {
    simulation.left_bytes = bytes;
    EXPECT_EQ(memory_left_lately(), bytes);
  }
  set_platform(nullptr);
  EXPECT_GT(memory_left_lately(), kMiB) << "this machine's";
}

TEST(MemoryLimits, OfThisMachine) {
  const MemoryLeft left = memory_limits().left();
  EXPECT_GT(left.bytes, kMiB);
  EXPECT_LE(left.bytes, left.limit_bytes);
  EXPECT_FALSE(left.limit.empty());
}

}  // namespace
}  // namespace torii
