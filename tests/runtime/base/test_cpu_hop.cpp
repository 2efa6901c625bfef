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

  int get(CpuSet& cpus) noexcept override {
    meanwhile(++calls);
    if (get_error != 0) return get_error;
    cpus = allowed();
    return 0;
  }
  int set(const CpuSet& cpus) noexcept override {
    meanwhile(++calls);
    if (set_error != 0) return set_error;
    if (usable_of(cpus).is_empty()) return EINVAL;
    wanted = cpus;
    for (int cpu = 0; !allowed().has(on); ++cpu) on = cpu;
    return 0;
  }
  /// All that are usable if no wanted one is.
  CpuSet allowed() const {
    const CpuSet left = usable_of(wanted);
    return left.is_empty() ? usable : left;
  }

  CpuSet usable;                  ///< of the cpuset, and online
  CpuSet wanted = CpuSet::all();  ///< what the thread's affinity was set to
  int on = 0;
  int get_error = 0, set_error = 0;
  int calls = 0;
  std::function<void(int call)> meanwhile = [](int) {};  ///< is called before each get and set, which have numbers

 private:
  CpuSet usable_of(const CpuSet& cpus) const {
    CpuSet others = CpuSet::all();
    others.remove(usable);
    CpuSet left = cpus;
    left.remove(others);
    return left;
  }
};

/// The calls of a hop that is made.
constexpr int kProbe = 2, kProbed = 3, kGo = 4, kThere = 5, kBack = 6, kOver = 7;

TEST(CpuHop, GoesToACpuThatIsNotTaken) {
  Kernel kernel({0, 1, 2, 3});
  EXPECT_EQ(hop(kernel, set_of({0, 1})), Hop::made);
  EXPECT_EQ(kernel.on, 2);
  EXPECT_EQ(kernel.calls, kBack);
}

TEST(CpuHop, LeavesAThreadUnboundThatNobodyHasBound) {
  Kernel kernel({0, 1});
  EXPECT_EQ(hop(kernel, set_of({0})), Hop::made);
  kernel.usable.add(7);
  EXPECT_EQ(kernel.allowed(), set_of({0, 1, 7})) << "a CPU that comes later";
}

TEST(CpuHop, LeavesABoundThreadBound) {
  Kernel kernel({0, 1, 2, 3});
  kernel.wanted = set_of({0, 2});
  kernel.meanwhile = [&](int call) {
    if (call > kGo) {
      EXPECT_NE(kernel.wanted, CpuSet::all()) << "from the hop on";
    }
  };
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

/// At no point does a thread keep what it had for the hop alone.
TEST(CpuHop, RestoresTheAffinityWhicheverCallHasNoMemory) {
  for (const bool is_bound : {false, true}) {
    const CpuSet before = is_bound ? set_of({0, 1}) : CpuSet::all();
    for (int without = 1; without <= kOver; ++without) {
      Kernel kernel({0, 1, 2});
      kernel.wanted = before;
      kernel.meanwhile = [&](int call) { kernel.set_error = call == without ? ENOMEM : 0; };
      const bool is_made = without != kProbe && without != kGo;
      EXPECT_EQ(hop(kernel, set_of({0})), is_made ? Hop::made : Hop::not_made) << without;
      if (without == kBack) {
        EXPECT_EQ(kernel.wanted, is_bound ? CpuSet::all() : set_of({0, 1, 2})) << "all that it may use";
      } else {
        EXPECT_EQ(kernel.wanted, before) << without;
      }
    }
  }
}

TEST(CpuHop, RestoresTheAffinityWhereverTheCpusetChanges) {
  for (const std::vector<int>& cpus : std::vector<std::vector<int>>{{0, 1, 2, 7}, {0, 1}, {0, 2}, {1, 2}, {0}, {7}}) {
    for (const bool is_bound : {false, true}) {
      const CpuSet before = is_bound ? set_of({0, 1}) : CpuSet::all();
      for (int when = kProbe; when <= kOver; ++when) {
        Kernel kernel({0, 1, 2});
        kernel.wanted = before;
        kernel.meanwhile = [&](int call) {
          if (call == when) kernel.usable = set_of(cpus);
        };
        (void)hop(kernel, set_of({0}));
        kernel.usable = set_of({0, 1, 2, 3});
        if (when == kProbe || when == kProbed) {
          // Between the first calls, which follow each other at once, nobody can tell a bound thread from another.
          EXPECT_TRUE(kernel.wanted == before || kernel.wanted == (is_bound ? CpuSet::all() : set_of({0, 1, 2})))
              << when << " of " << cpus.size();
        } else if (is_bound && !set_of(cpus).has(0) && !set_of(cpus).has(1)) {
          EXPECT_TRUE(kernel.wanted == before || kernel.wanted == CpuSet::all()) << when << ": none of its own is left";
        } else {
          EXPECT_EQ(kernel.wanted, before) << when << ' ' << is_bound << " of " << cpus.size();
        }
      }
    }
  }
}

TEST(CpuHop, LeavesAloneWhatSomebodyElseHasSetMeanwhile) {
  for (const CpuSet& other : {set_of({3}), set_of({0, 3}), CpuSet::all()}) {
    for (const bool is_bound : {false, true}) {
      for (int when = 1; when <= kOver; ++when) {
        Kernel kernel({0, 1, 2, 3});
        const CpuSet before = is_bound ? set_of({0, 1}) : CpuSet::all();
        kernel.wanted = before;
        const auto change = [&](int call) {
          if (call == when) kernel.wanted = other;
        };
        kernel.meanwhile = change;
        (void)hop(kernel, set_of({0}));
        change(kOver);
        // The thread waits for its turn on the other CPU between kGo and kThere. Elsewhere calls follow at once.
        if (when == 1 || when >= kThere) {
          const bool is_lost = when == kBack;
          EXPECT_EQ(kernel.wanted, is_lost ? before : other) << when;
        } else {
          EXPECT_NE(kernel.wanted, is_bound ? set_of({1}) : set_of({1, 2, 3})) << when;
        }
      }
    }
  }
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
