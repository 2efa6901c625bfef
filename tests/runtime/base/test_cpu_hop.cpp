// SPDX-License-Identifier: Apache-2.0
// A hop: where the thread goes, and that its affinity is afterwards what it was, whatever happens in between.
#include "runtime/base/cpu_hop.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <cerrno>
#include <functional>
#include <vector>

#include "runtime/devices/cpus.hpp"

namespace torii {
namespace {

CpuSet set_of(const std::vector<int>& cpus) {
  CpuSet set;
  for (const int cpu : cpus) set.add(cpu);
  return set;
}

/// A thread of a kernel in memory.
class Kernel final : public Affinity {
 public:
  explicit Kernel(const std::vector<int>& cpus) : usable(set_of(cpus)) {}

  int cpu() noexcept override { return numbers_mean_something ? on : 0; }
  int get(CpuSet& cpus) noexcept override {
    before_call();
    if (get_error != 0) return get_error;
    cpus = effective(wanted);
    return 0;
  }
  int set(const CpuSet& cpus) noexcept override {
    before_call();
    if (set_error != 0) return set_error;
    if (effective(cpus).is_empty()) return EINVAL;
    wanted = cpus;
    if (effective(cpus).has(on)) return 0;
    for (on = 0; !effective(cpus).has(on);) ++on;
    return 0;
  }
  CpuSet effective(const CpuSet& cpus) const {
    CpuSet left = cpus;
    CpuSet others = CpuSet::all();
    others.remove(usable);
    left.remove(others);
    return left;
  }

  CpuSet usable;                  ///< of the cpuset, and online
  CpuSet wanted = CpuSet::all();  ///< what the thread's affinity was set to
  int on = 0;
  bool numbers_mean_something = true;
  int get_error = 0, set_error = 0;
  int calls = 0;
  std::function<void(int call)> meanwhile = [](int) {};  ///< is called before each get and set, which have numbers

 private:
  void before_call() { meanwhile(++calls); }
};

TEST(CpuHop, GoesToACpuThatIsNotTaken) {
  Kernel kernel({0, 1, 2, 3});
  EXPECT_EQ(hop(kernel, set_of({0, 1})), Hop::made);
  EXPECT_EQ(kernel.on, 2);
}

TEST(CpuHop, LeavesAThreadUnboundThatNobodyHasBound) {
  Kernel kernel({0, 1});
  EXPECT_EQ(hop(kernel, set_of({0})), Hop::made);
  kernel.usable.add(7);
  CpuSet allowed;
  EXPECT_EQ(kernel.get(allowed), 0);
  EXPECT_EQ(allowed, set_of({0, 1, 7})) << "a CPU that comes later";
}

TEST(CpuHop, LeavesABoundThreadBound) {
  Kernel kernel({0, 1, 2, 3});
  kernel.wanted = set_of({0, 2});
  EXPECT_EQ(hop(kernel, set_of({0})), Hop::made);
  EXPECT_EQ(kernel.on, 2);
  EXPECT_EQ(kernel.wanted, set_of({0, 2}));
}

TEST(CpuHop, StaysWhereNoCpuIsFree) {
  Kernel kernel({0, 1, 2});
  kernel.wanted = set_of({0, 1});
  EXPECT_EQ(hop(kernel, set_of({0, 1})), Hop::not_made) << "CPU 2 is not the thread's";
  EXPECT_EQ(kernel.calls, 1);
  EXPECT_EQ(kernel.on, 0);
}

TEST(CpuHop, IsGivenUpWhereTheSystemRefuses) {
  Kernel refuses_both({0, 1});
  refuses_both.get_error = ENOSYS;
  EXPECT_EQ(hop(refuses_both, set_of({0})), Hop::impossible);
  Kernel refuses({0, 1});
  refuses.set_error = EPERM;
  EXPECT_EQ(hop(refuses, set_of({0})), Hop::impossible);
  EXPECT_EQ(refuses.on, 0);
}

TEST(CpuHop, IsNotMadeToCpusThatHaveJustGone) {
  Kernel kernel({0, 1});
  kernel.meanwhile = [&](int call) {
    if (call == 2) kernel.usable = set_of({0});
  };
  EXPECT_EQ(hop(kernel, set_of({0})), Hop::not_made);
  EXPECT_EQ(kernel.wanted, CpuSet::all());
}

TEST(CpuHop, LeavesAloneWhatSomebodyElseHasSetMeanwhile) {
  Kernel kernel({0, 1, 2, 3});
  kernel.meanwhile = [&](int call) {
    if (call == 3) kernel.wanted = set_of({3});
  };
  EXPECT_EQ(hop(kernel, set_of({0})), Hop::not_made);
  EXPECT_EQ(kernel.wanted, set_of({3}));
}

TEST(CpuHop, KeepsAllCpusThatAreLeftIfItsOwnHaveGone) {
  Kernel kernel({0, 1, 2, 3});
  kernel.wanted = set_of({0, 1});
  kernel.meanwhile = [&](int call) {
    if (call == 4) kernel.usable = set_of({2, 3});
  };
  (void)hop(kernel, set_of({0}));
  CpuSet allowed;
  EXPECT_EQ(kernel.get(allowed), 0);
  EXPECT_EQ(allowed, set_of({2, 3}));
}

TEST(CpuHop, IsGivenUpWhereNumbersMeanNothing) {
  Kernel kernel({0, 1});
  kernel.wanted = set_of({0, 1});
  kernel.numbers_mean_something = false;
  EXPECT_EQ(hop(kernel, set_of({0})), Hop::impossible);
  CpuSet allowed;
  EXPECT_EQ(kernel.get(allowed), 0);
  EXPECT_EQ(allowed, set_of({0, 1}));
}

TEST(CpuHop, OfThisThreadKeepsItsAffinity) {
  const CpuList before = allowed_cpus();
  if (before.size() < 2) GTEST_SKIP() << "this thread may run on one CPU only";
  // Bound to two CPUs, then to all that it may use.
  for (const bool is_bound : {true, false}) {
    const CpuList mine = is_bound ? CpuList{before[0], before[1]} : before;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : mine) CPU_SET(static_cast<unsigned>(cpu), &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    EXPECT_EQ(hop(set_of({before[0]})), Hop::made);
    EXPECT_EQ(allowed_cpus(), mine);
    EXPECT_EQ(hop(set_of(before)), Hop::not_made);
    EXPECT_EQ(allowed_cpus(), mine);
  }
}

TEST(CpuSet, HasWhatWasAdded) {
  CpuSet set;
  EXPECT_TRUE(set.is_empty());
  for (const int cpu : {0, 63, 64, CpuSet::kCpusMost - 1}) {
    EXPECT_FALSE(set.has(cpu));
    set.add(cpu);
    EXPECT_TRUE(set.has(cpu));
    EXPECT_FALSE(set.has(cpu - 1 == 63 ? 62 : cpu - 1));
  }
  CpuSet same = set;
  for (const int cpu : {-1, CpuSet::kCpusMost, 1 << 20}) {
    same.add(cpu);
    EXPECT_FALSE(same.has(cpu));
  }
  EXPECT_EQ(same, set);
  set.remove(same);
  EXPECT_TRUE(set.is_empty());
}

}  // namespace
}  // namespace torii
