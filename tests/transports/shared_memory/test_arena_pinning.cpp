// SPDX-License-Identifier: Apache-2.0
// Which parts of an arena fabrics pin, and what of it is handed out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/status.hpp"
#include "tests/transports/shared_memory/arena_looks.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii::shared_memory {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A fabric that notes what it pins, up to a limit, and touches it as a device does.
struct PinningFabric {
  std::vector<Extent> extents;
  std::size_t most = SIZE_MAX;  ///< as a limit of locked memory

  std::shared_ptr<const void> pin(Arena& arena, std::size_t bytes) {
    const auto begin = arena.extents_to_pin(bytes);
    extents = *begin;
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

TEST(PinnedArena, APinnedOneKeepsItsPages) {
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

TEST(PinnedArena, PinsExtentsAsItIsUsedAndNothingCrossesTheirEnds) {
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

TEST(PinnedArena, PinsNoMoreThanNeededWhereMoreIsRefused) {
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

TEST(PinnedArena, EveryFabricPinsAllUntilItEnds) {
  Arena arena(kLeastBytes);
  const std::size_t before = arena.allocate(5 * kMiB);
  PinningFabric first;
  PinningFabric second;
  auto of_first = first.pin(arena, 64 * kMiB);
  EXPECT_TRUE(first.holds(before, 5 * kMiB));
  (void)arena.allocate(20 * kMiB);
  const std::vector<Extent> known = *arena.extents_to_pin(64 * kMiB);
  (void)arena.allocate(20 * kMiB);
  // The second fabric also pins the extents that were pinned after it had asked.
  second.extents = known;
  const auto of_second = arena.pin(64 * kMiB, known, [&](const Extent& extent) { second.extents.push_back(extent); });
  EXPECT_EQ(second.extents.size(), first.extents.size());
  of_first.reset();
  const std::size_t extents = first.extents.size();
  (void)arena.allocate(10 * kMiB);
  EXPECT_EQ(first.extents.size(), extents);
  EXPECT_GT(second.extents.size(), extents);
}

const Arena::Pinner kPinsAll = [](const Extent&) {};

TEST(PinnedArena, KeepsPagesFromTheMomentAFabricBegins) {
  Arena arena(kLeastBytes);
  const std::size_t first = arena.allocate(kMiB);
  {
    const auto begin = arena.extents_to_pin(kLeastBytes);
    arena.free(first);
    EXPECT_EQ(resident_bytes(arena), kMiB) << "the device knows these pages";
  }
  // A fabric that did not open.
  arena.free(arena.allocate(kMiB));
  EXPECT_EQ(resident_bytes(arena), 0U);
}

TEST(PinnedArena, ContextsThatAreMadeAtOnceKnowAllThatIsHandedOut) {
  Arena arena(kLeastBytes);
  const auto slow = arena.extents_to_pin(kLeastBytes);
  const std::size_t between = arena.allocate(3 * kMiB);
  const auto fast = arena.extents_to_pin(kLeastBytes);
  const auto pinning_fast = arena.pin(kLeastBytes, *fast, kPinsAll);
  std::vector<Extent> known = *slow;
  const auto note = [&](const Extent& one) { known.push_back(one); };
  const auto pinning_slow = arena.pin(kLeastBytes, *slow, note);
  const std::size_t later = arena.allocate(kMiB / 2);
  for (const auto& [offset, bytes] : {std::pair(between, 3 * kMiB), std::pair(later, kMiB / 2)}) {
    EXPECT_TRUE(std::ranges::any_of(known, [&](const Extent& one) { return one.holds(offset, bytes); })) << offset;
  }
}

TEST(PinnedArena, WhatIsAllocatedWhileAFabricOpensCrossesNoEnds) {
  Arena arena(kLeastBytes);
  (void)arena.allocate(kMiB);
  const auto begin = arena.extents_to_pin(kLeastBytes);
  const std::size_t between = arena.allocate(4 * kMiB);
  std::vector<Extent> known = *begin;
  const auto pinning = arena.pin(kLeastBytes, *begin, [&](const Extent& one) { known.push_back(one); });
  EXPECT_TRUE(std::ranges::any_of(known, [&](const Extent& one) { return one.holds(between, 4 * kMiB); }));
}

TEST(PinnedArena, TakesTheLeastThatAnyContextCanPin) {
  Arena arena(2 * kLeastBytes);
  const auto begin = arena.extents_to_pin(2 * kLeastBytes);
  const auto first = arena.pin(2 * kLeastBytes, *begin, kPinsAll);
  arena.free(arena.allocate(300 * kMiB));
  std::size_t end = 0;
  const auto note = [&](const Extent& one) { end = one.end(); };
  const auto second = arena.pin(kLeastBytes, *arena.extents_to_pin(2 * kLeastBytes), note);
  EXPECT_EQ(arena.capacity_bytes(), kLeastBytes);
  const auto third = arena.pin(2 * kLeastBytes, *begin, kPinsAll);
  EXPECT_EQ(arena.capacity_bytes(), kLeastBytes);
  EXPECT_EQ(status_of([&] { arena.allocate(300 * kMiB); }), Status::no_resource);
  (void)arena.allocate(200 * kMiB);
  EXPECT_EQ(status_of([&] { (void)arena.pin(kLeastBytes / 2, *begin, kPinsAll); }), Status::no_resource);
  EXPECT_LE(end, kLeastBytes);
}

TEST(PinnedArena, WhatIsReservedIsThereWhenNobodyPinsAnyMore) {
  Arena arena(kLeastBytes);
  auto pinning = arena.pin(kLeastBytes, *arena.extents_to_pin(kLeastBytes), kPinsAll);
  pinning.reset();
  (void)arena.allocate(64 * kMiB);
  EXPECT_GE(resident_bytes(arena), 64 * kMiB);
}

TEST(PinnedArena, GivesBackThePagesOfAnExtentThatIsRefused) {
  Arena arena(kLeastBytes);
  const auto refuse = [](const Extent&) { throw Error(Status::no_resource, "locked memory is limited"); };
  const auto pinning = arena.pin(kLeastBytes, *arena.extents_to_pin(kLeastBytes), refuse);
  const std::size_t before = resident_bytes(arena);
  EXPECT_EQ(status_of([&] { arena.allocate(16 * kMiB); }), Status::no_resource);
  EXPECT_EQ(resident_bytes(arena), before);
}

TEST(PinnedArena, WhatIsPinnedByDefaultIsSharedByTheRanks) {
  EXPECT_EQ(Arena::pinnable_bytes(1 << 20), kArenaBytesMin);
  EXPECT_GE(Arena::pinnable_bytes(1), Arena::pinnable_bytes(2));
  EXPECT_LE(Arena::pinnable_bytes(1), std::size_t{1} << 30);
  EXPECT_EQ(Arena::pinnable_bytes(3) % 65536, 0u);
}

}  // namespace
}  // namespace torii::shared_memory
