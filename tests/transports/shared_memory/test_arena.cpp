// SPDX-License-Identifier: Apache-2.0
// The arena of a rank: alignment, zeroes, holes, exhaustion, seals, and many threads at once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "runtime/base/status.hpp"
#include "tests/support/test_run.hpp"
#include "tests/transports/shared_memory/arena_looks.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii::shared_memory {
namespace {

TEST(Arena, AWishForANodeBelongsToTheFile) {
  Arena arena(kLeastBytes);
  const Mapping peers(arena.fd(), kLeastBytes);
  const std::size_t before = resident_bytes(arena);
  const int refused = prefer_node(arena.base(), kLeastBytes, 0);
  if (refused == EPERM || refused == ENOSYS) GTEST_SKIP() << "this container or kernel refuses mbind";
  ASSERT_EQ(refused, 0);
  int policy = -1;
  unsigned long nodes[16] = {};
  const long asked = syscall(SYS_get_mempolicy, &policy, nodes, 8 * sizeof(nodes), peers.base(), MPOL_F_ADDR);
  if (asked != 0 && errno == EPERM) GTEST_SKIP() << "this container refuses get_mempolicy";
  ASSERT_EQ(asked, 0) << errno;
  EXPECT_EQ(policy, MPOL_PREFERRED) << "of the peer's mapping";
  EXPECT_EQ(nodes[0], 1u);
  EXPECT_EQ(resident_bytes(arena), before) << "nothing is taken before it is touched";
  EXPECT_EQ(prefer_node(arena.base(), kLeastBytes, -1), EINVAL);
  EXPECT_EQ(prefer_node(arena.base(), kLeastBytes, 1 << 20), EINVAL);
}

TEST(Arena, AlignsAndReservesWhatItGives) {
  Arena arena(kLeastBytes);
  const std::size_t small = arena.allocate(1);
  const std::size_t next = arena.allocate(65);
  const std::size_t big = arena.allocate(100'000);
  EXPECT_EQ(small % 64, 0u);
  EXPECT_EQ(next % 64, 0u);
  EXPECT_EQ(big % 65536, 0u);
  EXPECT_EQ(arena.used_bytes(), 64u + 128u + 131072u);
  EXPECT_GE(resident_bytes(arena), 131072u) << "reserved pages must be there before they are touched";
  const std::size_t before = resident_bytes(arena);
  const std::size_t lazy = arena.allocate(std::size_t{8} << 20, Backing::on_touch);
  EXPECT_EQ(resident_bytes(arena), before);
  arena.base()[lazy] = std::byte{1};
  EXPECT_GT(resident_bytes(arena), before);
}

TEST(Arena, FreeGivesThePagesBack) {
  Arena arena(kLeastBytes);
  std::vector<std::size_t> offsets;
  for (int i = 0; i < 200; ++i) offsets.push_back(arena.allocate(i % 2 == 0 ? 1000 : 70'000));
  std::shuffle(offsets.begin(), offsets.end(), std::mt19937(1));
  for (const std::size_t offset : offsets) arena.free(offset);
  EXPECT_EQ(arena.used_bytes(), 0u);
  EXPECT_EQ(resident_bytes(arena), 0u);
  EXPECT_EQ(arena.allocate(kLeastBytes), 0u) << "all free ranges must have become one again";
  arena.free(0);
}

TEST(Arena, RandomUseNeverOverlapsAndAlwaysZeroes) {
  for (const tests::Seed& seed : tests::seeds_of("test_arena", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    Arena arena(kLeastBytes);
    std::map<std::size_t, std::size_t> live;  // offset -> bytes
    for (int step = 0; step < 3000; ++step) {
      if (live.size() > 40 || (!live.empty() && random() % 3 == 0)) {
        auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
        arena.free(victim->first);
        live.erase(victim);
        continue;
      }
      const std::size_t bytes = 1 + random() % (random() % 4 == 0 ? 300'000 : 5'000);
      const std::size_t offset = arena.allocate(bytes);
      ASSERT_TRUE(is_zero(arena.base() + offset, bytes)) << "step " << step;
      const auto next = live.lower_bound(offset);
      ASSERT_TRUE(next == live.end() || offset + bytes <= next->first);
      ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= offset);
      std::memset(arena.base() + offset, 0xff, bytes);
      live.emplace(offset, bytes);
    }
  }
}

TEST(Arena, RefusesWhatItCannotDo) {
  Arena arena(kLeastBytes);
  EXPECT_EQ(status_of([&] { arena.allocate(0); }), Status::invalid_argument);
  EXPECT_EQ(status_of([&] { arena.allocate(kLeastBytes + 1); }), Status::no_resource);
  EXPECT_EQ(status_of([&] { arena.allocate(SIZE_MAX); }), Status::no_resource);
  EXPECT_EQ(status_of([&] { arena.free(64); }), Status::invalid_argument);
  const std::size_t first = arena.allocate(1);
  EXPECT_EQ(status_of([&] { arena.allocate(kLeastBytes); }), Status::no_resource) << "no piece of that size is left";
  arena.free(first);
  EXPECT_EQ(status_of([&] { arena.free(first); }), Status::invalid_argument);
}

TEST(Arena, MoreThanTheMachineHasIsAnErrorAndLeavesNothing) {
  const auto machine =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (4 * machine / 65536 + 1) * 65536;
  Arena arena(bytes);
  EXPECT_EQ(status_of([&] { arena.allocate(bytes); }), Status::no_resource);
  EXPECT_EQ(arena.used_bytes(), 0u);
  EXPECT_EQ(resident_bytes(arena), 0u);
}

TEST(Arena, CannotShrinkUnderItsMappings) {
  Arena arena(kLeastBytes);
  EXPECT_NE(ftruncate(arena.fd(), 4096), 0);
  EXPECT_NE(fcntl(arena.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Arena, KnowsItsAddresses) {
  Arena arena(kLeastBytes);
  const int outside = 0;
  EXPECT_TRUE(arena.contains(arena.base(), kLeastBytes));
  EXPECT_TRUE(arena.contains(arena.base() + kLeastBytes, 0));
  EXPECT_FALSE(arena.contains(arena.base() + 1, kLeastBytes));
  EXPECT_FALSE(arena.contains(arena.base() + 1, SIZE_MAX));
  EXPECT_FALSE(arena.contains(&outside, 1));
}

TEST(Arena, ThreadsShareIt) {
  Arena arena(kLeastBytes);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&arena, thread] {
      const auto mark = static_cast<std::byte>(thread + 1);
      for (int round = 0; round < 200; ++round) {
        const std::size_t bytes = 64u << (round % 12);
        const std::size_t offset = arena.allocate(bytes);
        std::fill_n(arena.base() + offset, bytes, mark);
        EXPECT_TRUE(
            std::all_of(arena.base() + offset, arena.base() + offset + bytes, [mark](auto b) { return b == mark; }));
        arena.free(offset);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena.used_bytes(), 0u);
}

TEST(Arena, PossibleSizeHalvesUntilItFits) {
  EXPECT_EQ(Arena::possible_bytes(std::size_t{1} << 30, 2), std::size_t{1} << 30);
  // 1024 arenas of 1 TiB exceed any address space of today.
  const std::size_t fits = Arena::possible_bytes(std::size_t{1} << 40, 1024);
  EXPECT_LT(fits, std::size_t{1} << 40);
  EXPECT_GE(fits, kArenaBytesMin);
  EXPECT_EQ(status_of([] { Arena::possible_bytes(std::size_t{1} << 40, 1 << 30); }), Status::no_resource);
}

}  // namespace
}  // namespace torii::shared_memory
