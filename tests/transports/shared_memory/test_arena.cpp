// SPDX-License-Identifier: Apache-2.0
// The arena of a rank: alignment, zeroes, holes, exhaustion, seals, and many threads at once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/base/status.hpp"
#include "tests/support/test_run.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii::shared_memory {
namespace {

constexpr std::size_t kLeastBytes = kArenaBytesMin;

/// Memory that the arena's file holds now.
std::size_t resident_bytes(const Arena& arena) {
  struct stat info {};
  EXPECT_EQ(fstat(arena.fd(), &info), 0);
  return static_cast<std::size_t>(info.st_blocks) * 512;
}

template <class Step>
Status status_of(Step&& step) {
  try {
    step();
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    return error.status();
  }
  return Status::ok;
}

bool is_zero(const std::byte* from, std::size_t bytes) {
  return std::all_of(from, from + bytes, [](std::byte one) { return one == std::byte{0}; });
}

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

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A fabric that notes what it pins, up to a limit, and touches it as a device does.
struct PinningFabric {
  std::vector<Extent> extents;
  std::size_t most = SIZE_MAX;  ///< as a limit of locked memory

  std::shared_ptr<const void> pin(Arena& arena, std::size_t bytes) {
    extents = arena.extents_to_pin(bytes);
    for (const Extent& one : extents) std::memset(arena.base() + one.offset, 0, one.bytes);
    return arena.pin(bytes, extents, [this, &arena](const Extent& extent) {
      std::size_t pinned = extent.bytes;
      for (const Extent& one : extents) pinned += one.bytes;
      if (pinned > most) throw Error(Status::no_resource, "locked memory is limited");
      for (std::size_t at = extent.offset; at < extent.end(); at += 4096) arena.base()[at] = std::byte{0};
      extents.push_back(extent);
    });
  }
  bool holds(std::size_t offset, std::size_t bytes) const {
    return std::ranges::any_of(extents, [=](const Extent& one) { return one.holds(offset, bytes); });
  }
};

TEST(Arena, APinnedOneKeepsItsPages) {
  constexpr std::size_t kPinned = 8 * kMiB;
  Arena arena(kLeastBytes);
  PinningFabric fabric;
  const std::size_t first = arena.allocate(1);
  const std::size_t behind = arena.allocate(2 * kPinned);
  EXPECT_EQ(status_of([&] {
              (void)arena.pin(kPinned, {{0, kPinned}}, {});
            }),
            Status::no_resource)
      << "memory behind it is in use";
  arena.free(behind);
  for (const std::size_t wrong : {std::size_t{0}, kPinned + 4096, kLeastBytes + 65536}) {
    EXPECT_EQ(status_of([&] { (void)arena.pin(wrong, {{0, kPinned}}, {}); }), Status::internal) << wrong;
  }
  EXPECT_EQ(status_of([&] { (void)arena.pin(kPinned, {}, {}); }), Status::internal);
  EXPECT_FALSE(arena.is_pinned());
  const auto pinning = fabric.pin(arena, kPinned);
  EXPECT_TRUE(arena.is_pinned());
  EXPECT_EQ(arena.capacity_bytes(), kPinned);
  EXPECT_EQ(arena.bytes(), kLeastBytes);
  arena.free(first);
  arena.free(arena.allocate(6 * kMiB));  // pins what is left
  const std::size_t resident = resident_bytes(arena);
  EXPECT_EQ(resident, kPinned);
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{70'000}, 6 * kMiB}) {
    const std::size_t offset = arena.allocate(bytes);
    EXPECT_TRUE(fabric.holds(offset, bytes));
    EXPECT_TRUE(is_zero(arena.base() + offset, bytes));
    std::memset(arena.base() + offset, 0xff, bytes);
    arena.free(offset);
    EXPECT_EQ(resident_bytes(arena), resident);
  }
  const std::size_t lazy = arena.allocate(6 * kMiB, Backing::on_touch);
  arena.reserve(lazy, 6 * kMiB);
  arena.release(lazy, 6 * kMiB);
  EXPECT_EQ(resident_bytes(arena), resident);
  try {
    arena.allocate(kPinned + 1);
    ADD_FAILURE() << "more than is pinned";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "an allocation of 8388609 bytes is larger than the arena of 8388608 that the fabric has pinned; raise "
                 "TORII_ARENA");
  }
  arena.free(lazy);
  for (const std::size_t bytes : {6 * kMiB, 2 * kMiB}) (void)arena.allocate(bytes);
  EXPECT_EQ(status_of([&] { arena.allocate(64); }), Status::no_resource) << "nothing behind it is handed out";
}

TEST(Arena, PinsExtentsAsItIsUsedAndNothingCrossesTheirEnds) {
  Arena arena(kLeastBytes);
  PinningFabric fabric;
  const auto pinning = fabric.pin(arena, 64 * kMiB);
  ASSERT_EQ(fabric.extents.size(), 1U);
  EXPECT_EQ(fabric.extents[0].bytes, 2 * kMiB);
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 40; ++i) {
    const std::size_t bytes = 700'000;  // does not divide an extent
    EXPECT_TRUE(fabric.holds(arena.allocate(bytes), bytes)) << i;
  }
  for (const Extent& one : fabric.extents) sizes.push_back(one.bytes / kMiB);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 2, 4, 8, 16})) << "each as large as all before it";
  // One that needs more than that.
  EXPECT_TRUE(fabric.holds(arena.allocate(31 * kMiB), 31 * kMiB));
  EXPECT_EQ(fabric.extents.back().end(), 64 * kMiB);
  EXPECT_EQ(status_of([&] { arena.allocate(8 * kMiB); }), Status::no_resource);
  EXPECT_TRUE(fabric.holds(arena.allocate(600'000), 600'000)) << "smaller ones still fit into gaps";
}

TEST(Arena, PinsNoMoreThanNeededWhereMoreIsRefused) {
  Arena arena(kLeastBytes);
  PinningFabric fabric;
  fabric.most = 13 * kMiB;
  const auto pinning = fabric.pin(arena, 64 * kMiB);
  (void)arena.allocate(8 * kMiB);
  EXPECT_EQ(fabric.extents.back().bytes, 8 * kMiB);
  EXPECT_TRUE(fabric.holds(arena.allocate(kMiB + 1), kMiB + 1)) << "there is room in the first extent";
  EXPECT_TRUE(fabric.holds(arena.allocate(kMiB + 1), kMiB + 1));
  EXPECT_EQ(fabric.extents.back().bytes, 2 * kMiB) << "not 10";
  try {
    arena.allocate(4 * kMiB);
    ADD_FAILURE() << "the limit is passed";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "locked memory is limited");
  }
  const std::size_t used = arena.used_bytes();
  fabric.most = SIZE_MAX;
  EXPECT_TRUE(fabric.holds(arena.allocate(4 * kMiB), 4 * kMiB)) << "a later try succeeds";
  EXPECT_EQ(arena.used_bytes(), used + 4 * kMiB);
}

TEST(Arena, EveryFabricPinsAllUntilItEnds) {
  Arena arena(kLeastBytes);
  const std::size_t before = arena.allocate(5 * kMiB);
  PinningFabric first;
  PinningFabric second;
  auto of_first = first.pin(arena, 64 * kMiB);
  EXPECT_TRUE(first.holds(before, 5 * kMiB));
  (void)arena.allocate(20 * kMiB);
  const std::vector<Extent> known = arena.extents_to_pin(64 * kMiB);
  (void)arena.allocate(20 * kMiB);
  // What was pinned after the second fabric has asked is pinned by it, too.
  second.extents = known;
  const auto of_second = arena.pin(64 * kMiB, known, [&](const Extent& extent) { second.extents.push_back(extent); });
  EXPECT_EQ(second.extents.size(), first.extents.size());
  of_first.reset();
  const std::size_t extents = first.extents.size();
  (void)arena.allocate(10 * kMiB);
  EXPECT_EQ(first.extents.size(), extents);
  EXPECT_GT(second.extents.size(), extents);
}

TEST(Arena, WhatIsPinnedByDefaultIsSharedByTheRanks) {
  EXPECT_EQ(Arena::pinnable_bytes(1 << 20), kArenaBytesMin);
  EXPECT_GE(Arena::pinnable_bytes(1), Arena::pinnable_bytes(2));
  EXPECT_LE(Arena::pinnable_bytes(1), std::size_t{1} << 30);
  EXPECT_EQ(Arena::pinnable_bytes(3) % 65536, 0u);
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
