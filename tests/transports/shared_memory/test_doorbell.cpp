// SPDX-License-Identifier: Apache-2.0
// How long a rank sleeps on its doorbell, and when it makes a fence for all: on a platform in memory.
#include <gtest/gtest.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/platform.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/shared_memory/node_peers.hpp"
#include "transports/shared_memory/shared_memory.hpp"

namespace torii::shared_memory {
namespace {

class Bells final : public Platform {
 public:
  Bells() { set_platform(this); }
  ~Bells() override { set_platform(nullptr); }
  bool join_fences() noexcept override { return joined++ < joining; }
  bool fence_all() noexcept override {
    ++fences;
    return fence_works;
  }
  void wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t most_ns) noexcept override {
    if (records) {
      waits_us.push_back(most_ns / 1000);
    } else {
      Platform::wait(word, value, most_ns);
    }
  }

  int joining = 1000;  ///< so many ranks join
  std::atomic<int> joined = 0;
  bool fence_works = true;
  bool records = false;
  int fences = 0;
  std::vector<std::int64_t> waits_us;
};

bool stays_idle(void*) { return true; }

/// What rank 0 of so many ranks asks for when it may sleep for `most_us`, again and again in one wait.
std::int64_t sleep(Bells& machine, int ranks, int most_us, int times = 1) {
  std::vector<std::unique_ptr<Arena>> arenas(static_cast<std::size_t>(ranks));
  std::vector<std::unique_ptr<SharedMemory>> transports(static_cast<std::size_t>(ranks));
  std::vector<std::unique_ptr<Nodes>> nodes(static_cast<std::size_t>(ranks));
  std::vector<std::unique_ptr<NodePeers>> peers(static_cast<std::size_t>(ranks));
  tests::run_ranks_as_threads(ranks, [&](Bootstrap& bootstrap) {
    const auto at = static_cast<std::size_t>(bootstrap.rank());
    nodes[at] = std::make_unique<Nodes>(bootstrap);
    arenas[at] = make_arena(bootstrap, *nodes[at], kArenaBytesMin);
    peers[at] = std::make_unique<NodePeers>(bootstrap, *nodes[at], *arenas[at], 20);
    transports[at] = std::make_unique<SharedMemory>(bootstrap, *arenas[at], *peers[at], 1);
  });
  machine.records = true;
  {
    SleepMark mark;
    const std::atomic<std::uint32_t>* const sleeping = transports.back()->sleeping(0);
    for (int time = 0; time < times; ++time) {
      transports[0]->sleep(mark, most_us, stays_idle, nullptr);
      EXPECT_EQ(sleeping->load(), 1U) << "peers see it until the wait is over";
    }
    mark.clear();
    EXPECT_EQ(sleeping->load(), 0U);
    transports[0]->sleep(mark, most_us, stays_idle, nullptr);
  }
  EXPECT_EQ(transports.back()->sleeping(0)->load(), 0U);
  machine.records = false;
  return machine.waits_us.empty() ? -1 : machine.waits_us.back();
}

TEST(Doorbell, AWaitWithLongSleepsBeginsWithAFenceForAll) {
  Bells machine;
  EXPECT_EQ(sleep(machine, 2, 1000, 5), 1000);
  EXPECT_EQ(machine.fences, 2) << "one for five sleeps, and one for the next wait";
}

TEST(Doorbell, AShortSleepMayMissARing) {
  Bells machine;
  EXPECT_EQ(sleep(machine, 2, 50), 50);
  EXPECT_EQ(sleep(machine, 2, 100), 100);
  EXPECT_EQ(machine.fences, 0);
}

TEST(Doorbell, SleepsAreShortWhereAFenceIsRefused) {
  Bells machine;
  machine.fence_works = false;
  EXPECT_EQ(sleep(machine, 2, 1000), 100);
  EXPECT_EQ(sleep(machine, 3, 1000), 150) << "more ranks share the CPUs to look";
  EXPECT_GT(machine.fences, 0);
}

TEST(Doorbell, SleepsAreShortWhereARankHasNotJoinedTheFences) {
  Bells machine;
  machine.joining = 1;
  EXPECT_EQ(sleep(machine, 2, 1000), 100);
  EXPECT_EQ(machine.fences, 0);
}

TEST(Doorbell, NobodyFencesForARankThatIsAlone) {
  Bells machine;
  EXPECT_EQ(sleep(machine, 1, 1000), 1000);
  EXPECT_EQ(machine.joined, 0);
  EXPECT_EQ(machine.fences, 0);
}

/// A child that has so many threads joins the fences if the kernel has them. Returns the child's exit code.
int join_in_child(int threads) {
  const pid_t child = fork();
  if (child == 0) {
    for (int thread = 1; thread < threads; ++thread) std::thread([] { pause(); }).detach();
    const long has = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    const bool is_possible = has >= 0 && (has & MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) != 0;
    Platform system;
    const bool has_joined = system.join_fences();
    const bool has_fenced = has_joined && system.fence_all();
    _exit(has_joined == is_possible && has_fenced == is_possible && system.join_fences() == is_possible ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Doorbell, AProcessJoinsTheFencesThatTheKernelHas) {
  EXPECT_EQ(join_in_child(1), 0);
  EXPECT_EQ(join_in_child(2), 0);
}

}  // namespace
}  // namespace torii::shared_memory
