// SPDX-License-Identifier: Apache-2.0
// Control groups and their CPU quotas, of version 1 and 2, nested, in containers and outside, as planted files; and
// what ranks that have a quota are taken for.
#include "runtime/devices/control_groups.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/thread_ranks.hpp"
#include "transports/shared_memory/nodes.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;

/// A machine's files below a folder of the test's own.
class Planted {
 public:
  explicit Planted(const std::string& name)
      : root_(fs::path(testing::TempDir()) / ("torii_test_groups_" + name + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "proc/self");
  }
  ~Planted() { fs::remove_all(root_); }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
  const fs::path& root() const { return root_; }
  void plant(const std::string& path, const std::string& text) const {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }

 private:
  fs::path root_;
};

constexpr const char* kUnified = "24 1 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";

class ControlGroups : public testing::Test {
 protected:
  std::vector<double> quotas() const {
    std::vector<double> cpus;
    for (const CpuQuota& quota : cpu_quotas(planted_.root())) cpus.push_back(quota.cpus);
    return cpus;
  }
  Planted planted_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

using Cpus = std::vector<double>;

TEST_F(ControlGroups, NoneWhereTheKernelTellsNothing) { EXPECT_EQ(quotas(), Cpus{}); }

TEST_F(ControlGroups, OfVersion2UpToTheRoot) {
  planted_.plant("proc/self/mountinfo", kUnified);
  planted_.plant("proc/self/cgroup", "0::/batch/job7/step");
  planted_.plant("sys/fs/cgroup/batch/job7/step/cpu.max", "max 100000");
  EXPECT_EQ(quotas(), Cpus{});
  planted_.plant("sys/fs/cgroup/batch/job7/cpu.max", "250000 100000");
  EXPECT_EQ(quotas(), Cpus{2.5});
  planted_.plant("sys/fs/cgroup/batch/cpu.max", "400000 50000");
  EXPECT_EQ(quotas(), (Cpus{2.5, 8}));
  planted_.plant("sys/fs/cgroup/other/cpu.max", "1000 100000");
  EXPECT_EQ(quotas(), (Cpus{2.5, 8})) << "another group's";
  planted_.plant("sys/fs/cgroup/batch/job7/cpu.max", "rubbish");
  EXPECT_EQ(quotas(), Cpus{8});
  EXPECT_EQ(control_groups("cpu", planted_.root()).size(), 4U);
  EXPECT_EQ(control_groups("cpu", planted_.root()).back(), planted_.root() / "sys/fs/cgroup");
}

TEST_F(ControlGroups, OfVersion1AmongManyControllers) {
  planted_.plant("proc/self/mountinfo",
                 "25 1 0:22 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                 "26 1 0:23 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 - cgroup cgroup rw,cpu,cpuacct\n"
                 "27 1 0:24 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
  planted_.plant("proc/self/cgroup", "12:cpuset:/elsewhere\n4:cpu,cpuacct:/user/job\n1:name=systemd:/user\n0::/user");
  planted_.plant("sys/fs/cgroup/cpu,cpuacct/user/job/cpu.cfs_quota_us", "-1");
  planted_.plant("sys/fs/cgroup/cpu,cpuacct/user/job/cpu.cfs_period_us", "100000");
  planted_.plant("sys/fs/cgroup/cpuset/elsewhere/cpu.cfs_quota_us", "1000");
  planted_.plant("sys/fs/cgroup/cpuset/elsewhere/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quotas(), Cpus{});
  planted_.plant("sys/fs/cgroup/cpu,cpuacct/user/cpu.cfs_quota_us", "150000");
  planted_.plant("sys/fs/cgroup/cpu,cpuacct/user/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quotas(), Cpus{1.5});
}

TEST_F(ControlGroups, AContainerShowsItsOwnAsTheFirst) {
  // Version 1 without a name space of its own: the group is named as outside, the mount shows a part.
  planted_.plant("proc/self/mountinfo",
                 "26 1 0:23 /docker/4711 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n" + std::string(kUnified));
  planted_.plant("proc/self/cgroup", "4:cpu:/docker/4711\n0::/../../outside");
  planted_.plant("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000");
  planted_.plant("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  planted_.plant("sys/outside/cpu.max", "1000 100000");
  EXPECT_EQ(quotas(), Cpus{0.5});
  planted_.plant("proc/self/cgroup", "4:cpu:/docker/4712");
  EXPECT_EQ(quotas(), Cpus{0.5}) << "outside of what is shown: what is shown is the nearest";
}

/// What the ranks are taken for when rank r has the files of machine r % machines.
bool is_oversubscribed(int ranks, const std::vector<const Planted*>& machines) {
  bool is = false;
  run_ranks_as_threads(ranks, [&](Bootstrap& exchange) {
    const Planted& own = *machines[static_cast<std::size_t>(exchange.rank()) % machines.size()];
    const shared_memory::Nodes nodes(exchange, {}, shared_memory::Nodes::Rule::shared, own.root());
    if (exchange.rank() == 0) is = nodes.oversubscribed();
  });
  return is;
}

TEST_F(ControlGroups, MoreRanksThanAGroupsQuotaAreOversubscribed) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "this test needs two CPUs, and one is allowed here";
  planted_.plant("proc/self/mountinfo", kUnified);
  planted_.plant("proc/self/cgroup", "0::/job/step");
  planted_.plant("sys/fs/cgroup/job/step/cpu.max", "max 100000");
  EXPECT_FALSE(is_oversubscribed(2, {&planted_}));
  planted_.plant("sys/fs/cgroup/job/cpu.max", "200000 100000");
  EXPECT_FALSE(is_oversubscribed(2, {&planted_}));
  planted_.plant("sys/fs/cgroup/job/cpu.max", "190000 100000");
  EXPECT_TRUE(is_oversubscribed(2, {&planted_})) << "a rank that polls needs a whole CPU";
  EXPECT_FALSE(is_oversubscribed(1, {&planted_}));
  // Each of two groups with a quota of one CPU has room for one rank.
  const Planted other("other");
  other.plant("proc/self/mountinfo", kUnified);
  other.plant("proc/self/cgroup", "0::/job");
  other.plant("sys/fs/cgroup/job/cpu.max", "100000 100000");
  planted_.plant("sys/fs/cgroup/job/cpu.max", "100000 100000");
  EXPECT_FALSE(is_oversubscribed(2, {&planted_, &other}));
  other.plant("sys/fs/cgroup/job/cpu.max", "90000 100000");
  EXPECT_TRUE(is_oversubscribed(2, {&planted_, &other}));
}

}  // namespace
}  // namespace torii::tests
